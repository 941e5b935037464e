package main

import (
	"testing"

	"kata-device-plugin/internal/sim"
)

// TestPlatforms plays the demo on every platform.
func TestPlatforms(t *testing.T) {
	for _, p := range sim.Platforms() {
		t.Run(p.Name, func(t *testing.T) {
			if err := run(t.Context(), []string{"-platform=" + p.Name}); err != nil {
				t.Error(err)
			}
		})
	}
	if err := run(t.Context(), []string{"-platform=dgx-2"}); err == nil {
		t.Error("an unknown platform is no error")
	}
}
