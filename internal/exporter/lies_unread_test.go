package exporter

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/nodestate"
)

// liesOfUnread are about CDI specs that are there, and of which the exporter does not know what they say. Runtimes
// may: so no name that such a spec may have is missing, and none that it may have as well is certain.
func liesOfUnread() []lie {
	const switches, claims = "nvidia.com/nvswitch", `allocations_not_released{source="cdi_specs"}`
	told := func(gpus, others []string, valid int) map[string][]string {
		return map[string][]string{"cdi_devices": slices.Concat(gpus, others), "cdi_specs": {
			`{state="invalid"} 0`, `{state="too_new"} 0`, `{state="unexamined"} 1`, fmt.Sprintf(`{state="valid"} %d`, valid),
		}}
	}
	known, otherKnown := names(gpu, 0, 8, 0, 0), names(switches, 0, 4, 0, 0)
	unknown, otherUnknown := names(gpu, 0, 0, 8, 0), names(switches, 0, 0, 4, 0)
	own := func(n *node) string { return filepath.Join(n.roots.CDI, "kata.nvidia.com-gpu.json") }
	const garbage = "{"
	return []lie{
		{name: "a spec may not be read", happens: func(n *node) { withhold(n.t, own(n)) }, told: told(unknown, otherKnown, 1)},
		{name: "reading a spec fails", happens: func(n *node) {
			must(n.t, os.Remove(own(n)), os.Symlink("/proc/self/mem", own(n)))
		}, told: told(unknown, otherKnown, 1)},
		{name: "a spec of somebody may not be read", happens: func(n *node) {
			withhold(n.t, written(n, n.roots.CDI, garbage))
		}, told: told(unknown, otherUnknown, 2), gone: []string{claims}},
		{name: "a spec of somebody may not be read any more", happens: func(n *node) {
			path := written(n, n.roots.CDI, `{"cdiVersion": "0.5.0", "kind": "x.org/y", "devices": [{"name": "z", "containerEdits": {"env": ["A=b"]}}]}`)
			n.pass(time.Second)
			n.want("cdi_devices", slices.Concat(known, otherKnown)...)
			withhold(n.t, path)
		}, told: told(unknown, otherUnknown, 2), gone: []string{claims}},
		{name: "a spec of somebody is too large", happens: func(n *node) {
			written(n, n.roots.CDI, strings.Repeat(" ", 300<<10))
		}, told: told(unknown, otherUnknown, 2), gone: []string{claims}},
		{name: "a spec that may not be read is where it hides nothing", happens: func(n *node) {
			withhold(n.t, written(n, n.roots.StaticCDI, garbage))
		}, told: told(known, otherKnown, 2), gone: []string{claims}},
		{name: "a spec has gone, and another may not be read", happens: func(n *node) {
			must(n.t, os.Remove(own(n)))
			withhold(n.t, written(n, n.roots.StaticCDI, garbage))
		}, told: told(unknown, otherKnown, 1), gone: []string{claims}},
		{name: "the directory of people's specs may not be read", happens: func(n *node) {
			written(n, n.roots.StaticCDI, garbage)
			withhold(n.t, n.roots.StaticCDI)
		}, told: told(known, otherKnown, 2), gone: []string{claims}, partly: sources(nodestate.Specs)},
		{name: "a spec has gone, and the directory of people's specs may not be read", happens: func(n *node) {
			written(n, n.roots.StaticCDI, garbage)
			must(n.t, os.Remove(own(n)))
			withhold(n.t, n.roots.StaticCDI)
		}, told: told(unknown, otherKnown, 1), gone: []string{claims}, partly: sources(nodestate.Specs)},
		{name: "the CDI directory may not be read", happens: func(n *node) { withhold(n.t, n.roots.CDI) },
			silent: sources(nodestate.Specs, nodestate.Locks), gone: []string{"cdi_devices", "cdi_specs", claims, "resource_owner_info"}},
		{name: "a spec is a link to nothing", happens: func(n *node) {
			must(n.t, os.Symlink("nothing", filepath.Join(n.roots.CDI, "people.json")))
		}, told: map[string][]string{"cdi_devices": slices.Concat(known, otherKnown), "cdi_specs": {
			`{state="invalid"} 0`, `{state="too_new"} 0`, `{state="unexamined"} 0`, `{state="valid"} 2`,
		}}},
	}
}

// written is a file of people's own among the specs.
func written(n *node, dir, text string) (path string) {
	n.t.Helper()
	path = filepath.Join(dir, "people.json")
	must(n.t, os.MkdirAll(dir, 0o755), os.WriteFile(path, []byte(text), 0o644))
	return path
}

// withhold makes a file one that the test may not read until it ends, or gives it back: another user's alone, and
// nobody may read those without a capability.
func withhold(t testing.TB, path string) (giveBack func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		info, err := os.Stat(path)
		must(t, err, os.Chmod(path, 0))
		giveBack = sync.OnceFunc(func() { must(t, os.Chmod(path, info.Mode())) }) // or a directory cannot be removed
		t.Cleanup(giveBack)
		return giveBack
	}
	must(t, os.Chmod(path, 0o600), os.Chown(path, 65534, 65534))
	runtime.LockOSThread() // capabilities are the thread's
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	must(t, unix.Capget(&head, &all[0]))
	fewer := all
	fewer[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	must(t, unix.Capset(&head, &fewer[0]))
	giveBack = sync.OnceFunc(func() {
		must(t, unix.Capset(&head, &all[0]))
		runtime.UnlockOSThread()
	})
	t.Cleanup(giveBack)
	return giveBack
}

// TestReadAgain: a file that could not be read is read once that is possible, though it is the same one.
func TestReadAgain(t *testing.T) {
	n := complete(t)
	giveBack := withhold(t, filepath.Join(n.roots.CDI, "kata.nvidia.com-gpu.json"))
	n.pass(time.Second)
	n.want("cdi_devices", slices.Concat(names(gpu, 0, 0, 8, 0), names("nvidia.com/nvswitch", 0, 4, 0, 0))...)
	giveBack()
	n.pass(time.Second)
	if got := n.series("cdi_specs"); !slices.Contains(got, `{state="valid"} 2`) {
		t.Errorf("it may be read, and told is %v", got)
	}
}

// TestNumbersOfNodes: a spec may have the number of a node as well as its path. When the kernel has given the path to another
// node, the container would get that one's number, or what has taken the number since.
func TestNumbersOfNodes(t *testing.T) {
	n := complete(t)
	path := filepath.Join(n.roots.CDI, "kata.nvidia.com-gpu.json")
	number, _ := n.cdev(n.GPUs()[0])
	node := fmt.Sprintf("/dev/vfio/devices/vfio%d", number)
	var st unix.Stat_t
	must(t, unix.Stat(filepath.Join(n.roots.Dev, strings.TrimPrefix(node, "/dev")), &st))
	major, minor := unix.Major(st.Rdev), unix.Minor(st.Rdev)
	text, err := os.ReadFile(path)
	must(t, err)
	for name, tt := range map[string]struct {
		major, minor uint32
		stale        int
	}{
		"the host's":       {major, minor, 0},
		"another minor":    {major + 1, minor + 7, 1}, // where nodes have no numbers, 0 is none in a spec either
		"another's major":  {major + 1, minor, 1},
		"left to the host": {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			with := strings.Replace(string(text), `"`+node+`"`, fmt.Sprintf(`"%s","major":%d,"minor":%d`, node, tt.major, tt.minor), 1)
			if with == string(text) {
				t.Fatalf("no %s in %.200s", node, text)
			}
			must(t, os.WriteFile(path+".new", []byte(with), 0o644), os.Rename(path+".new", path))
			n.pass(time.Second)
			want := []string{fmt.Sprintf(`{kind="%s",state="stale"} %d`, gpu, tt.stale), fmt.Sprintf(`{kind="%s",state="resolvable"} %d`, gpu, 8-tt.stale)}
			for _, line := range want {
				if got := n.series("cdi_devices"); !slices.Contains(got, line) {
					t.Errorf("%v, want %s", got, line)
				}
			}
		})
	}
}
