package nodeview_test

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/nodeview"
	"kata-device-plugin/internal/picture"
	"kata-device-plugin/internal/podresources"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sysfs"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// snapshot is a look at a node with eight GPUs.
func snapshot(t *testing.T) *host.Snapshot {
	t.Helper()
	shape, err := sim.PlatformByName("hgx-h100")
	must(t, err)
	dir := t.TempDir()
	_, err = sim.New(dir, shape)
	must(t, err)
	sys, err := sysfs.Open(filepath.Join(dir, "sys"))
	must(t, err)
	t.Cleanup(func() { must(t, sys.Close()) })
	source := host.Source{Sys: sys, Dev: devfs.Dir(filepath.Join(dir, "dev")), Wanted: declare.Passthrough().Wants}
	return source.Look(nil)
}

const gpu = "nvidia.com/gpu"

// spec is a CDI spec with devices and their nodes.
func spec(devices ...[2]string) *fstest.MapFile {
	var b strings.Builder
	b.WriteString(`{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": [`)
	for i, d := range devices {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`{"name": "` + d[0] + `", "containerEdits": {"deviceNodes": [{"path": "` + d[1] + `"}]}}`)
	}
	b.WriteString("]}")
	return &fstest.MapFile{Data: []byte(b.String()), Mode: 0o644}
}

// gpus are the GPUs of a look, with their own nodes.
func gpus(s *host.Snapshot) (ids, nodes []string) {
	for _, r := range declare.Passthrough().Declare(s, declare.Past{}).Resources {
		for _, d := range r.Devices {
			if r.Name == gpu {
				ids, nodes = append(ids, d.ID), append(nodes, d.Nodes[0].OnHost())
			}
		}
	}
	return ids, nodes
}

func show(t *testing.T, s *host.Snapshot, state *nodestate.State) (inv *inventory.Inventory, wide, tree, svg string) {
	t.Helper()
	var in inventory.Input
	nodeview.Add(&in, state, 0)
	inv = inventory.New(s, in)
	var a, b, c bytes.Buffer
	must(t, inv.Write(&a, inventory.Wide, inventory.Options{}), inv.Write(&b, inventory.Tree, inventory.Options{}),
		picture.Write(&c, inv, picture.Options{}))
	return inv, a.String(), b.String(), c.String()
}

// TestView: who has a device and what its CDI name comes to is in every form.
func TestView(t *testing.T) {
	s := snapshot(t)
	ids, nodes := gpus(s)
	offered := make([]podresources.Device, len(ids))
	for i, id := range ids {
		offered[i] = podresources.Device{Resource: gpu, ID: id}
	}
	state := nodeview.Join(nodeview.Sources{
		Hardware: s,
		Files: fstest.MapFS{
			"var/run/cdi/kata.json": spec([2]string{ids[0], nodes[0]}, [2]string{ids[2], "/dev/vfio/devices/other"},
				[2]string{ids[3], nodes[3]}, [2]string{ids[4], nodes[4]}),
			"var/run/cdi/other.json": spec([2]string{ids[3], nodes[3]}),
			"etc/cdi/old.json":       spec([2]string{ids[4], "/dev/vfio/devices/old"}),
			"etc/cdi/broken.yaml":    {Data: []byte("kind: [")},
			"etc/cdi/readme.txt":     {Data: []byte("kind: no/spec")},
			"var/run/cdi/new.json": {Data: bytes.Replace(spec([2]string{ids[5], nodes[5]}).Data, []byte("0.6.0"), []byte("99.0.0"), 1),
				Mode: 0o644}, // which runtimes refuse, so that its device is missing
		},
		Kubelet: nodeview.Kubelet{
			Allocatable: offered,
			Pods: []podresources.Pod{{Namespace: "team", Name: "train", Containers: []podresources.Container{{
				Name: "c", Devices: offered[:1], Claims: []podresources.Claim{{Namespace: "team", Name: "mine", Devices: []podresources.ClaimDevice{
					{Driver: draname.Driver, Pool: "n", Device: "gpu-" + strings.NewReplacer(":", "-", ".", "-").Replace(ids[1])},
				}}},
			}}}},
		},
	})
	inv, wide, tree, svg := show(t, s, state)
	for i, want := range []string{"ok", "missing", "stale", "conflicting", "ok", "missing"} {
		for k := range inv.Functions {
			if f := &inv.Functions[k]; f.Address.String() == ids[i] && (f.Devices[0].CDI == nil || f.Devices[0].CDI.State.Word() != want) {
				t.Errorf("the CDI name of device %d comes to %+v, want %s", i, f.Devices[0].CDI, want)
			}
		}
	}
	for of, text := range map[string]string{"wide": wide, "tree": tree, "svg": svg} {
		for _, want := range []string{"team/train/c", "team/train/c by claim mine", "stale", "conflicting", "missing"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", of, want, text)
			}
		}
		if strings.Contains(text, "not known: ") {
			t.Errorf("%s says that something is not known", of)
		}
	}
}

// TestUnknown: what nobody told is not known, with the reason.
func TestUnknown(t *testing.T) {
	s := snapshot(t)
	state := nodeview.Join(nodeview.Sources{Hardware: s, Files: denied{}, Kubelet: nodeview.Silent(errors.New("kubelet is away"))})
	inv, wide, tree, svg := show(t, s, state)
	for of, text := range map[string]string{"wide": wide, "tree": tree, "svg": svg} {
		for _, want := range []string{
			"Who has which device is not known: kubelet is away",
			"Whether CDI resolves the devices is not known: list CDI specs: open etc/cdi: permission denied",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", of, want, text)
			}
		}
	}
	if !inv.Lacks(inventory.UnknownHolders) || inv.Because[inventory.UnknownHolders] != "kubelet is away" {
		t.Errorf("%v, %v", inv.Unknown, inv.Because)
	}
}

// denied are files that nobody may read.
type denied struct{}

func (denied) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

// TestUnread: of a spec that cannot be read nobody knows what it says, so that nothing is known; one that goes after
// it was listed is as if it had not been there.
func TestUnread(t *testing.T) {
	s := snapshot(t)
	ids, nodes := gpus(s)
	specs := fstest.MapFS{
		"var/run/cdi/kata.json": spec([2]string{ids[0], nodes[0]}), "var/run/cdi/other.json": spec([2]string{"x", "/dev/null"}),
	}
	offered := []podresources.Device{{Resource: gpu, ID: ids[0]}}
	for name, tt := range map[string]struct {
		how   failing
		known string // why it is not
	}{
		"may not be opened":    {failing{specs, "open", fs.ErrPermission}, "open var/run/cdi/other.json: permission denied"},
		"may not be looked at": {failing{specs, "stat", fs.ErrPermission}, "stat var/run/cdi/other.json: permission denied"},
		"fails":                {failing{specs, "open", syscall.EIO}, "open var/run/cdi/other.json: input/output error"},
		"goes":                 {failing{specs, "stat", fs.ErrNotExist}, ""},
		"goes a bit later":     {failing{specs, "open", fs.ErrNotExist}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			state := nodeview.Join(nodeview.Sources{Hardware: s, Files: tt.how, Kubelet: nodeview.Kubelet{Allocatable: offered}})
			inv, _, _, _ := show(t, s, state)
			if why := inv.Because[inventory.UnknownCDI]; inv.Lacks(inventory.UnknownCDI) != (tt.known != "") || !strings.HasSuffix(why, tt.known) {
				t.Errorf("unknown because of %q, want %q", why, tt.known)
			}
			for i := range inv.Functions {
				f := &inv.Functions[i]
				if f.Address.String() == ids[0] && (f.Devices[0].CDI != nil && f.Devices[0].CDI.State == inventory.CDIResolves) != (tt.known == "") {
					t.Errorf("the CDI name is %+v", f.Devices[0].CDI)
				}
			}
		})
	}
}

// failing are files of which one cannot be looked at, or be opened.
type failing struct {
	fs.FS
	op  string
	err error
}

const failingFile = "var/run/cdi/other.json"

func (f failing) Open(name string) (fs.File, error) {
	if name == failingFile && f.op == "open" {
		return nil, &fs.PathError{Op: f.op, Path: name, Err: f.err}
	}
	return f.FS.Open(name)
}

func (f failing) Stat(name string) (fs.FileInfo, error) {
	if name == failingFile && f.op == "stat" {
		return nil, &fs.PathError{Op: f.op, Path: name, Err: f.err}
	}
	return fs.Stat(f.FS, name)
}
