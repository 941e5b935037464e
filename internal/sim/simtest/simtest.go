// Package simtest lays out simulated nodes for tests. What it makes is removed when the test has ended,
// and what goes wrong on the way ends the test.
package simtest

import (
	"os"
	"path/filepath"
	"testing"

	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sysfs"
)

// Preset is a platform by its name, as sim.PlatformByName knows it.
func Preset(t testing.TB, name string) sim.Platform {
	t.Helper()
	p, err := sim.PlatformByName(name)
	must(t, err)
	return p
}

// Node lays out a platform and returns it with its root directory, which others may be made beside:
// its parent is the test's alone.
func Node(t testing.TB, p sim.Platform) (n *sim.Node, root string) {
	t.Helper()
	dir, err := sim.TempDir()
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	root = filepath.Join(dir, "node")
	n, err = sim.New(root, p)
	must(t, err)
	return n, root
}

// Source looks at a node, at its sysfs and its device nodes. What a program wants of it is the
// caller's to say.
func Source(t testing.TB, n *sim.Node) host.Source {
	t.Helper()
	roots := n.Roots("test")
	sys, err := sysfs.Open(roots.Sys)
	must(t, err)
	t.Cleanup(func() { must(t, sys.Close()) })
	return host.Source{Sys: sys, Dev: devfs.Dir(roots.Dev)}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
