package exporter

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/exporter/gather"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nodestate"
)

// claimed is a node with a claim and its spec. The claim may have a record, and a pod that has it.
func claimed(t *testing.T, record, used bool) (n *node, spec string) {
	t.Helper()
	n = complete(t)
	id := n.GPUs()[2]
	if record {
		n.record(n.prepared("c-1", "take", "gpu", id))
	}
	n.claimSpec("c-1", "gpu", id)
	if used {
		n.kubelet.set(func() {
			n.kubelet.pods = append(n.kubelet.pods, pod("ml", "claims", &api.ContainerResources{Name: "main", DynamicResources: []*api.DynamicResource{
				dynamic("ml", "take", "c-1", n.deviceName("gpu", id))}}))
		})
	}
	n.pass(time.Second)
	return n, filepath.Join(n.roots.CDI, cdi.FileName(draname.SpecOwner("c-1"), draname.ClaimKind))
}

// TestSpecOfClaim: whatever became of the spec of a claim, it is one that was not released when nobody has the claim,
// and else is not. So it is for an exporter that never knew what was in the file.
func TestSpecOfClaim(t *testing.T) {
	broken := map[string]func(t *testing.T, path string){
		"whole": func(*testing.T, string) {},
		"torn":  func(t *testing.T, path string) { must(t, os.Truncate(path, 20)) },
		"empty": func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) },
		"too large": func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte(strings.Repeat(" ", 300<<10)), 0o644))
		},
		"failing":     func(t *testing.T, path string) { must(t, os.Remove(path), os.Symlink("/proc/self/mem", path)) },
		"withheld":    func(t *testing.T, path string) { withhold(t, path) },
		"a directory": func(t *testing.T, path string) { must(t, os.Remove(path), os.Mkdir(path, 0o755)) },
	}
	for name, breaks := range broken {
		for _, has := range []struct {
			who          string
			record, used bool
		}{{"a pod", true, true}, {"a pod without a record", false, true}, {"a record", true, false}, {"nobody", false, false}} {
			for _, restarts := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/restarts=%t", name, has.who, restarts), func(t *testing.T) {
					n, spec := claimed(t, has.record, has.used)
					breaks(t, spec)
					if restarts {
						n.e.files = gather.New(gather.Config{Roots: n.roots, Kubelet: n.e.options.Kubelet})
					}
					for range 4 {
						n.pass(40 * time.Second)
					}
					left := 0
					if !has.record && !has.used && name != "a directory" { // which is no spec
						left = 1
					}
					want := fmt.Sprintf(`{source="cdi_specs"} %d`, left)
					if got := n.series("allocations_not_released"); !slices.Contains(got, want) {
						t.Errorf("%v, want %s", got, want)
					}
					// Nor has it a name of another kind.
					if want := `{kind="nvidia.com/gpu",state="resolvable"} 8`; !slices.Contains(n.series("cdi_devices"), want) {
						t.Errorf("%v, want %s", n.series("cdi_devices"), want)
					}
				})
			}
		}
	}
}

// TestNodesOfClaim: the name of a claim resolves where its spec has the nodes that its device has now. A number of
// VFIO's goes to the next device that is bound.
func TestNodesOfClaim(t *testing.T) {
	named := func(name string) func(n *node, path string) {
		return func(n *node, path string) {
			text, err := os.ReadFile(path)
			must(n.t, err)
			number, _ := n.cdev(n.GPUs()[2])
			was := fmt.Sprintf(`"/dev/vfio/devices/vfio%d"`, number)
			if !strings.Contains(string(text), was) {
				n.t.Fatalf("no %s in %s", was, text)
			}
			must(n.t, os.WriteFile(path+".new", []byte(strings.ReplaceAll(string(text), was, `"`+name+`"`)), 0o644), os.Rename(path+".new", path))
		}
	}
	of := func(index int, name func(f *host.Function) string) func(n *node, path string) {
		return func(n *node, path string) {
			f, _ := n.last.Function(address(n.t, n.GPUs()[index]))
			named(name(f))(n, path)
		}
	}
	cdev := func(f *host.Function) string { return host.DevicesDir + "/" + f.Cdev.Name }
	group := func(f *host.Function) string { return "/dev/vfio/" + f.Group.Number }
	for name, tt := range map[string]struct {
		happens func(n *node, path string)
		want    nodestate.CDIState
	}{
		"as prepared":                    {func(*node, string) {}, nodestate.CDIResolvable},
		"the node of its group":          {of(2, group), nodestate.CDIResolvable},
		"what is not VFIO's":             {named("/dev/null"), nodestate.CDIResolvable},
		"a number that no device has":    {named("/dev/vfio/devices/vfio99"), nodestate.CDIStale},
		"another device's number":        {of(3, cdev), nodestate.CDIStale},
		"the node of another group":      {of(3, group), nodestate.CDIStale},
		"its device has left its driver": {func(n *node, _ string) { must(n.t, n.Unbind(address(n.t, n.GPUs()[2]))) }, nodestate.CDIStale},
		"its device has gone":            {func(n *node, _ string) { must(n.t, n.Remove(address(n.t, n.GPUs()[2]))) }, nodestate.CDIStale},
		"its group cannot be read any more": {func(n *node, path string) {
			of(2, group)(n, path)
			must(n.t, n.BreakAttribute(address(n.t, n.GPUs()[2]), "iommu_group"))
		}, nodestate.CDIResolvable},
		"its group could never be read": {func(n *node, path string) {
			of(2, group)(n, path)
			must(n.t, n.BreakAttribute(address(n.t, n.GPUs()[2]), "iommu_group"))
			n.last = nil
		}, nodestate.CDIResolvable},
	} {
		t.Run(name, func(t *testing.T) {
			n, spec := claimed(t, true, true)
			tt.happens(n, spec)
			n.pass(time.Second)
			want := fmt.Sprintf(`{kind="%s",state="%s"} 1`, draname.ClaimKind, tt.want)
			if got := n.series("cdi_devices"); !slices.Contains(got, want) {
				t.Errorf("%v, want %s", got, want)
			}
		})
	}
}

// TestNodesOfGroup: a device that is a whole IOMMU group has the nodes of all its functions.
func TestNodesOfGroup(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h200"), nil)
	all := n.NVSwitches()
	r := n.prepared("c-1", "fabric", "nvswitch", all[0])
	r.Devices[0].Group = all
	n.record(r)
	var nodes []cdi.Node
	for _, a := range all {
		number, _ := n.cdev(a)
		nodes = append(nodes, cdi.Node{Path: fmt.Sprintf("%s/vfio%d", host.DevicesDir, number), Permissions: "rw"})
	}
	_, err := cdi.NewFile(n.roots.CDI, draname.SpecOwner("c-1"), draname.ClaimKind).Sync([]cdi.Device{
		{Name: "c-1-" + n.deviceName("nvswitch", all[0]), Nodes: nodes}})
	must(t, err)
	n.pass(0)
	if want := fmt.Sprintf(`{kind="%s",state="resolvable"} 1`, draname.ClaimKind); !slices.Contains(n.series("cdi_devices"), want) {
		t.Errorf("%v, want %s", n.series("cdi_devices"), want)
	}
}
