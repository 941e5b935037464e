package gather

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nodelock"
	"kata-device-plugin/internal/nodestate"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// reader reads below a directory of its own.
func reader(t *testing.T, nics ...string) (*Files, host.Roots) {
	t.Helper()
	dir, err := os.MkdirTemp("", "gather") // a socket's path is short
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	roots := host.Under(dir, "device-exporter")
	must(t, os.MkdirAll(roots.DevicePlugins, 0o750), os.MkdirAll(roots.CDI, 0o755))
	return New(Config{Roots: roots, Kubelet: filepath.Dir(roots.DevicePlugins), NICs: nics}), roots
}

func at(s int) time.Time { return time.Unix(1_000_000+int64(s), 0) }

// TestRecord: as kubelet 1.37 writes it, a device of two NUMA nodes in both.
func TestRecord(t *testing.T) {
	f, roots := reader(t)
	path := filepath.Join(roots.DevicePlugins, "kubelet_internal_checkpoint")
	must(t, os.WriteFile(path, []byte(`{"Data":{"PodDeviceEntries":[
		{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":{"0":["a"],"1":["a"]},"AllocResp":"KgA="},
		{"PodUID":"u","ContainerName":"d","ResourceName":"r","DeviceIDs":{"-1":["b"]},"AllocResp":""}],
		"RegisteredDevices":{"r":["a","b"],"s":null}},"Checksum":7}`), 0o600))
	var facts nodestate.Facts
	f.Read(&facts, at(0))
	want := nodestate.KubeletRecord{
		Registered: map[string][]string{"r": {"a", "b"}, "s": nil},
		Given:      []nodestate.Given{{UID: "u", Container: "c", Resource: "r", ID: "a"}, {UID: "u", Container: "d", Resource: "r", ID: "b"}},
	}
	if diff := cmp.Diff(want, facts.Record.Value); facts.Record.Err != nil || diff != "" {
		t.Errorf("%v\n%s", facts.Record.Err, diff)
	}
	must(t, os.WriteFile(path, []byte("{"), 0o600))
	f.Read(&facts, at(1))
	if facts.Record.Err == nil || !facts.Record.At.Equal(at(0)) || len(facts.Record.Value.Given) != 2 {
		t.Errorf("of a broken file: %+v", facts.Record)
	}
	must(t, os.Remove(path))
	f.Read(&facts, at(2))
	if !facts.Record.None || facts.Record.Err != nil {
		t.Errorf("without a file: %+v", facts.Record)
	}
}

// TestRecordIsReadOnce: a file that is the same is not read again, and grows no older.
func TestRecordIsReadOnce(t *testing.T) {
	f, roots := reader(t)
	path := filepath.Join(roots.DevicePlugins, "kubelet_internal_checkpoint")
	must(t, os.WriteFile(path, []byte(`{"Data":{"RegisteredDevices":{"r":["a"]}}}`), 0o600))
	var facts nodestate.Facts
	f.Read(&facts, at(0))
	before := facts.Record.Value.Registered
	f.Read(&facts, at(9))
	if got := facts.Record; !got.At.Equal(at(9)) || got.Err != nil || len(before) != 1 {
		t.Errorf("%+v", got)
	}
	before["r"][0] = "changed" // which another reading would undo
	f.Read(&facts, at(10))
	if facts.Record.Value.Registered["r"][0] != "changed" {
		t.Error("read again")
	}
}

// TestLocks: who has a lock is asked, and nothing is taken.
func TestLocks(t *testing.T) {
	f, roots := reader(t)
	owner := func() nodestate.Owner {
		t.Helper()
		var facts nodestate.Facts
		f.Read(&facts, at(0))
		if facts.Locks.Err != nil {
			t.Fatal(facts.Locks.Err)
		}
		return facts.Locks.Value[0].Owner
	}
	const gpu = "nvidia.com/gpu"
	if got := owner(); got != nodestate.Nobody {
		t.Errorf("without a file: %s", got)
	}
	for range 2 {
		alone, err := nodelock.Take(roots.CDI, gpu, "a plugin")
		must(t, err)
		if got := owner(); got != nodestate.DevicePlugin {
			t.Errorf("while a plugin has it: %s", got)
		}
		must(t, alone.Release())
		if got := owner(); got != nodestate.Nobody {
			t.Errorf("once it is given up: %s", got)
		}
		one, err := nodelock.TakeShared(roots.CDI, gpu, "a driver")
		must(t, err)
		two, err := nodelock.TakeShared(roots.CDI, gpu, "another")
		must(t, err)
		if got := owner(); got != nodestate.DRADriver {
			t.Errorf("while drivers share it: %s", got)
		}
		must(t, one.Release(), two.Release())
	}
}

// TestSockets: those of ours are connected to, and those of others are not.
func TestSockets(t *testing.T) {
	f, roots := reader(t)
	const own, other = "kata-gpu-0a1b2c3d.sock", "nvidia-gpu.sock"
	listener := map[string]net.Listener{}
	for _, name := range []string{own, other} {
		l, err := net.Listen("unix", filepath.Join(roots.DevicePlugins, name))
		must(t, err)
		listener[name] = l
		l.(*net.UnixListener).SetUnlinkOnClose(false)
	}
	must(t, os.WriteFile(filepath.Join(roots.DevicePlugins, "kata-gpu-00000000.sock"), nil, 0o600))
	read := func(now int) []nodestate.Socket {
		t.Helper()
		var facts nodestate.Facts
		f.Read(&facts, at(now))
		return facts.Sockets.Value
	}
	want := []nodestate.Socket{{Name: own, Listens: nodestate.Yes}, {Name: other}}
	if got := read(0); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// As long as the plugin has its lock, what listened is believed to listen for a minute.
	lock, err := nodelock.Take(roots.CDI, "nvidia.com/gpu", "a test")
	must(t, err)
	must(t, listener[own].Close(), listener[other].Close())
	if got := read(59); !slices.Equal(got, want) {
		t.Errorf("asked again too soon: %v", got)
	}
	gone := []nodestate.Socket{{Name: own, Listens: nodestate.No}, {Name: other}}
	if got := read(60); !slices.Equal(got, gone) {
		t.Errorf("%v, want %v", got, gone)
	}
	must(t, os.Remove(filepath.Join(roots.DevicePlugins, own)))
	again, err := net.Listen("unix", filepath.Join(roots.DevicePlugins, own))
	must(t, err)
	again.(*net.UnixListener).SetUnlinkOnClose(false)
	if got := read(61); !slices.Equal(got, want) {
		t.Errorf("it listens again: %v, want %v", got, want)
	}
	must(t, again.Close(), lock.Release())
	if got := read(62); !slices.Equal(got, gone) {
		t.Errorf("its plugin has let go of the lock: %v, want %v", got, gone)
	}
}

// TestSpecs: our own with their nodes, however long; the others by how readers take them.
func TestSpecs(t *testing.T) {
	f, roots := reader(t)
	var many []cdi.Device
	for i := range 3000 {
		name := "0000:41:00.0::" + string(rune('0'+i%10)) + strings.Repeat("x", i%7) + time.Unix(int64(i), 0).UTC().Format("150405")
		many = append(many, cdi.Device{Name: name, Nodes: []cdi.Node{{Path: "/dev/vfio/devices/vfio0", Permissions: "rw"}}})
	}
	_, err := cdi.NewFile(roots.CDI, "kata.", "nvidia.com/gpu").Sync(many)
	must(t, err)
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(roots.CDI, name), []byte(text), mode))
	}
	spec := func(version, kind, device string) string {
		return `{"cdiVersion":"` + version + `","kind":"` + kind + `","devices":[{"name":"` + device + `","containerEdits":{"env":["A=b"]}}],"containerEdits":{}}`
	}
	write("private.json", spec("0.5.0", "x.com/a", "d"), 0o600)
	write("new.json", spec("1.0.0", "x.com/b", "d"), 0o644)
	write("torn.json", "{", 0o644)
	write("long.json", strings.Repeat(" ", 300<<10)+spec("0.5.0", "x.com/c", "d"), 0o644)
	must(t, os.Symlink("/proc/self/mem", filepath.Join(roots.CDI, "failing.json"))) // nothing is mapped where it begins
	var facts nodestate.Facts
	f.Read(&facts, at(0))
	got := map[string]nodestate.Spec{}
	for _, s := range facts.Specs.Value {
		got[filepath.Base(s.Path)] = s
	}
	own := got["kata.nvidia.com-gpu.json"]
	if own.State != nodestate.SpecValid || own.Kind != "nvidia.com/gpu" || len(own.Devices) != 3000 || own.Private ||
		!slices.Equal(own.Devices[many[0].Name], []string{"/dev/vfio/devices/vfio0"}) {
		t.Errorf("own: %s %s %d", own.State, own.Kind, len(own.Devices))
	}
	for name, want := range map[string]nodestate.SpecState{
		"private.json": nodestate.SpecValid, "new.json": nodestate.SpecTooNew, "torn.json": nodestate.SpecInvalid, "long.json": nodestate.SpecUnexamined, "failing.json": nodestate.SpecUnexamined,
	} {
		if s := got[name]; s.State != want || s.Private != slices.Contains([]string{"private.json", "failing.json"}, name) {
			t.Errorf("%s: %+v, want %s", name, s, want)
		}
	}
}

// TestRules: a configuration that cannot be used leaves the rules that there were, and is an error.
func TestRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	f, _ := reader(t, file)
	var facts nodestate.Facts
	f.Read(&facts, at(0))
	if facts.NICRules.Err != nil || len(facts.Rules) != 2 || len(facts.Rules[1].Names()) != 0 {
		t.Errorf("without a file: %v, %d rules", facts.NICRules.Err, len(facts.Rules))
	}
	must(t, os.WriteFile(file, []byte(`{"resourceList":[{"resourceName":"a","selectors":{"ddpProfiles":["x"]}}]}`), 0o600))
	f.Read(&facts, at(1))
	if facts.NICRules.Err != nil || facts.NICRules.Value != 1 || !f.AsksProfile() {
		t.Errorf("%+v, asks %v", facts.NICRules, f.AsksProfile())
	}
	must(t, os.WriteFile(file, []byte(`{"resourceList":[{"resourceName":"a-","selectors":7}]}`), 0o600))
	f.Read(&facts, at(2))
	if err := facts.NICRules.Err; err == nil || !strings.Contains(err.Error(), file) || !facts.NICRules.At.Equal(at(1)) || len(facts.Rules[1].Names()) != 1 {
		t.Errorf("%+v", facts.NICRules)
	}
}
