package placement_test

import (
	"fmt"
	"strings"
	"testing"

	"kata-device-plugin/internal/placement"
)

// TestSpread: a container that asks for several shares gets them of several adapters.
func TestSpread(t *testing.T) {
	units := func(counts ...int) []placement.Unit {
		var all []placement.Unit
		for o, n := range counts {
			for i := range n {
				owner := string(rune('a' + o))
				all = append(all, placement.Unit{ID: fmt.Sprintf("%s%d", owner, i), Path: []string{"node 0", "root", owner}})
			}
		}
		return all
	}
	for _, tt := range []struct {
		what  string
		units []placement.Unit
		must  []string
		size  int
		want  string
	}{
		{"one of each", units(3, 3, 3), nil, 3, "a0 b0 c0"},
		{"the one with the most left", units(1, 3, 2), nil, 1, "b0"},
		{"round and round", units(2, 2), nil, 3, "a0 b0 a1"},
		{"a must counts", units(2, 2), []string{"a1"}, 2, "a1 b0"},
		{"a must of nobody", units(2), []string{"x"}, 2, "x a0"},
		{"more than there are", units(1, 1), nil, 5, "a0 b0"},
		{"none", nil, nil, 2, ""},
		{"nothing asked", units(2), nil, 0, ""},
		{"fewer than the musts", units(2), []string{"a0", "a1"}, 1, "a0"},
		{"doubled", append(units(1), units(1)...), nil, 2, "a0"},
	} {
		if got := strings.Join(placement.Spread(tt.units, tt.must, tt.size), " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.what, got, tt.want)
		}
	}
}
