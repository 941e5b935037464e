//go:build !kubernetes134

// Package exporter runs device-exporter as a process of its own on simulated nodes: against kubelet's
// own device manager and PodResources service, and with a browser in front of its page.
package exporter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/plane"
)

// plugin, nicPlugin and program are kata-device-plugin, nic-device-plugin and device-exporter, built once for
// all tests.
var plugin, nicPlugin, program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	plane.Quiet()
	dir, err := sim.Hold("", "exporter-programs.")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var nicErr, exporterErr error
	plugin, err = harness.BuildPlugin(ctx, dir)
	nicPlugin, nicErr = harness.BuildNICPlugin(ctx, dir)
	program, exporterErr = harness.BuildExporter(ctx, dir)
	if err = errors.Join(err, nicErr, exporterErr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
