package collect_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/collect"
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
	"kata-device-plugin/internal/sysfs"
)

// TestMain makes the modes of files the same wherever the tests run.
func TestMain(m *testing.M) {
	unix.Umask(0o022)
	m.Run()
}

// rig is a simulated node with the directory that is its root.
type rig struct {
	*sim.Node
	root string
}

func newRig(t testing.TB, p sim.Platform) *rig {
	t.Helper()
	n, root := simtest.Node(t, p)
	r := &rig{Node: n, root: root}
	r.write(t, "/proc/sys/kernel/hostname", "worker-7\n")
	r.write(t, "/proc/sys/kernel/osrelease", "6.12.0-test\n")
	r.write(t, "/proc/sys/kernel/random/boot_id", "0b7c1bb4-6a28-4c3f-9c7f-3a0e7a3f5a10\n")
	return r
}

func preset(t testing.TB, name string) sim.Platform {
	t.Helper()
	p, err := sim.PlatformByName(name)
	must(t, err)
	return p
}

// write puts a file onto the node.
func (r *rig) write(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(r.root, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(r.root, name), []byte(text), 0o644))
}

func (r *rig) options() collect.Options {
	return collect.Options{Root: r.root, Tool: "test", Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Links: r.Links}
}

// live is what looks at the node itself.
func (r *rig) live(t testing.TB) host.Source {
	t.Helper()
	roots := r.Roots("test")
	sys, err := sysfs.Open(roots.Sys)
	must(t, err)
	t.Cleanup(func() { must(t, sys.Close()) })
	return host.Source{Sys: sys, Dev: devfs.Dir(roots.Dev), Links: r.Links}
}

// capture captures the node, and returns what is read again of what was written.
func (r *rig) capture(t testing.TB) *capture.Capture {
	t.Helper()
	c, err := collect.Node(t.Context(), r.options())
	must(t, err)
	return again(t, c)
}

// again writes a capture and reads it.
func again(t testing.TB, c *capture.Capture) *capture.Capture {
	t.Helper()
	text := written(t, c)
	read, err := capture.Read(strings.NewReader(text))
	must(t, err)
	if diff := cmp.Diff(text, written(t, read)); diff != "" {
		t.Errorf("what was read is written otherwise (-want +got):\n%s", diff)
	}
	return read
}

func written(t testing.TB, c *capture.Capture) string {
	t.Helper()
	var b bytes.Buffer
	n, err := c.WriteTo(&b)
	must(t, err)
	if n != int64(b.Len()) {
		t.Errorf("%d bytes were written, and %d are said to be", b.Len(), n)
	}
	return b.String()
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func addr(t testing.TB, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

// options compare snapshots; of errors the text counts, with the paths that the host has.
func (r *rig) compare() cmp.Options {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return strings.ReplaceAll(err.Error(), r.root+"/", "/")
	}
	return cmp.Options{
		cmp.Comparer(func(a, b error) bool { return text(a) == text(b) }),
		cmpopts.IgnoreUnexported(host.Snapshot{}),
		cmp.Transformer("paths", func(s string) string { return strings.ReplaceAll(s, r.root+"/", "/") }),
	}
}
