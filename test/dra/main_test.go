//go:build !kubernetes134

// Package dra proves kata-dra-driver against Kubernetes itself: the API server, the scheduler, the
// controllers and kubelet's DRA manager run in the test's process, and the driver, as it is
// shipped but for its root paths, is a process of its own on a simulated node.
package dra

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/plane"
)

// programs are what the tests run, and the manifests that they apply.
type programs struct{ driver, plugin, manifests string }

// built is made once for all tests.
var built programs

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	plane.Quiet()
	dir, err := os.MkdirTemp("", "dra-programs")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if built, err = build(ctx, dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func build(ctx context.Context, dir string) (p programs, err error) {
	if p.driver, err = harness.BuildDRADriver(ctx, dir); err != nil {
		return p, err
	}
	if p.plugin, err = harness.BuildPlugin(ctx, dir); err != nil {
		return p, err
	}
	p.manifests, err = harness.Manifests(ctx, "kata-dra-driver")
	return p, err
}
