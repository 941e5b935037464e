package e2e

import (
	"os"
	"path/filepath"
	"slices"

	"tags.cncf.io/container-device-interface/pkg/cdi"

	"kata-device-plugin/test/harness"
)

// device is a device as a CDI spec names it.
type device struct{ id, node string }

// record is what was true of the machine at some moment: which functions were bound, and to
// which nodes.
type record map[device]bool

// note adds what is true now.
func (r record) note(n *node) {
	for id, path := range n.Cdevs() {
		r[device{id, path}] = true
	}
}

// onDisk reads all CDI specs as a container runtime does, and checks that each is whole, one
// of ours, and about its own resource. It returns what each resource's spec names. A resource
// without a spec has none.
func (n *node) onDisk(when string) map[string][]device {
	n.t.Helper()
	kinds := map[string]string{"kata.nvidia.com-gpu.json": harness.GPU, "kata.nvidia.com-nvswitch.json": harness.NVSwitch}
	entries, err := os.ReadDir(n.Roots.CDI)
	n.must(err)
	named := map[string][]device{}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".json" && ext != ".yaml" {
			continue // nobody reads it
		}
		spec, err := cdi.ReadSpec(filepath.Join(n.Roots.CDI, e.Name()), 0) // refuses what it does not know
		if err != nil {
			n.t.Fatalf("%s: %v", when, err)
		}
		if spec.Kind != kinds[e.Name()] || len(spec.Devices) == 0 {
			n.t.Fatalf("%s: %s is of kind %q and has %d devices", when, e.Name(), spec.Kind, len(spec.Devices))
		}
		for _, d := range spec.Devices {
			nodes := d.ContainerEdits.DeviceNodes
			if len(nodes) != 1 {
				n.t.Fatalf("%s: %s has %d nodes for %s", when, e.Name(), len(nodes), d.Name)
			}
			named[spec.Kind] = append(named[spec.Kind], device{d.Name, nodes[0].Path})
		}
	}
	return named
}

// wasTrue checks that the specs name nothing that was not there at some moment of the record.
func (n *node) wasTrue(when string, r record) {
	n.t.Helper()
	for resource, devices := range n.onDisk(when) {
		for _, d := range devices {
			if !r[d] {
				n.t.Fatalf("%s: the spec of %s says that %s is %s, which it never was; it was one of %v", when, resource, d.id, d.node, r)
			}
		}
	}
}

// isTrue checks that the specs name just what is there.
func (n *node) isTrue(when string) {
	n.t.Helper()
	named, cdevs := n.onDisk(when), n.Cdevs()
	for resource, ids := range map[string][]string{harness.GPU: n.GPUs(), harness.NVSwitch: n.NVSwitches()} {
		var want []device
		for _, id := range ids {
			want = append(want, device{id, cdevs[id]})
		}
		if !slices.Equal(named[resource], want) {
			n.t.Fatalf("%s: the spec of %s names %v, there are %v", when, resource, named[resource], want)
		}
	}
}

// died waits until kubelet knows that the plugin has gone, so that what it shows afterwards is
// of the next life.
func (n *node) died() {
	n.t.Helper()
	n.must(n.Kubelet.Await(n.ctx, func() bool {
		return len(n.Kubelet.Allocatable(harness.GPU))+len(n.Kubelet.Allocatable(harness.NVSwitch)) == 0
	}))
}
