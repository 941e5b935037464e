package collect_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/capture"
)

// TestMarks: of a node with SELinux labels are noted, and of CDI specs when they were written.
func TestMarks(t *testing.T) {
	const spec, socket, elsewhere = "/etc/cdi/a.yaml", "/var/lib/kubelet/device-plugins/a.sock", "/etc/containerd/config.toml"
	written := time.Date(2026, 2, 1, 8, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		stat, enforce string
		started       time.Time
	}{
		"on":            {"cpu 1 2 3\nbtime 1772272800\nprocesses 7\n", "1", time.Date(2026, 2, 28, 10, 0, 0, 0, time.UTC)},
		"off":           {"btime 1772272800\n", "", time.Date(2026, 2, 28, 10, 0, 0, 0, time.UTC)},
		"without times": {"btime soon\n", "0", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, preset(t, "workstation"))
			for _, file := range []string{spec, socket, elsewhere} {
				r.write(t, file, "")
			}
			must(t, os.Chtimes(filepath.Join(r.root, spec), written, written))
			r.write(t, "/proc/stat", test.stat)
			if test.enforce != "" {
				r.write(t, "/sys/fs/selinux/enforce", test.enforce)
			}
			label, known := "system_u:object_r:container_var_lib_t:s0", true
			if err := unix.Setxattr(filepath.Join(r.root, socket), "security.selinux", append([]byte(label), 0), 0); err != nil {
				known = false // where files have no labels, or somebody else gives them
			}
			c := r.capture(t)
			if c.Meta.Started != test.started {
				t.Errorf("it was started %s, want %s", c.Meta.Started, test.started)
			}
			want := capture.Entry{}
			if !test.started.IsZero() {
				want.Modified = written
			}
			if e, ok := c.Entry(spec); !ok || e.Modified != want.Modified {
				t.Errorf("the spec is of %+v, want %s", e, want.Modified)
			}
			if e, ok := c.Entry(elsewhere); !ok || !e.Modified.IsZero() {
				t.Errorf("a file that is no spec has a time: %+v", e)
			}
			if test.enforce == "" {
				label = ""
			}
			if e, ok := c.Entry(socket); known && (!ok || e.Label != label) {
				t.Errorf("the socket is %+v, want the label %q", e, label)
			}
		})
	}
}
