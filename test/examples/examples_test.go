//go:build !kubernetes134

package examples_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sysfs"
	"kata-device-plugin/test/plane"
)

const (
	node     = "node"
	manifest = "../../deploy/kata-dra-driver/"
	claims   = "../../deploy/examples/dra/"
	root     = "resource.kubernetes.io/pcieRoot"
	numa     = "resource.kubernetes.io/numaNode"
)

func TestMain(m *testing.M) {
	plane.Quiet()
	os.Exit(m.Run())
}

// board is an HGX H100 whose network controllers are bound to VFIO too, as it is published.
func board(t *testing.T) []resourceapi.Device {
	t.Helper()
	dir, err := sim.TempDir()
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	p, err := sim.PlatformByName("hgx-h100")
	must(t, err)
	n, err := sim.New(filepath.Join(dir, "node"), p)
	must(t, err)
	for _, f := range n.Functions() {
		if sub := f.Class.Sub(); sub == 0x0207 {
			must(t, n.Unbind(f.Address()))
			must(t, n.Bind(f.Address(), "vfio-pci"))
		}
	}
	roots := n.Roots("test")
	sys, err := sysfs.Open(roots.Sys)
	must(t, err)
	t.Cleanup(func() { must(t, sys.Close()) })
	inventory := dra.Take(host.Source{Sys: sys, Devices: roots.VFIODevices(), Wanted: dra.Wants}.Look(nil))
	var offers []dra.Offer
	for i := range inventory.Devices {
		offers = append(offers, dra.Offer{Device: &inventory.Devices[i]})
	}
	all := dra.Pool(offers).Slices
	if len(all) != 1 {
		t.Fatalf("there are %d slices, want 1", len(all))
	}
	return all[0].Devices
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cluster has one node with the board's devices, the driver's classes and Kata's runtime class.
func cluster(t *testing.T, devices []resourceapi.Device) *plane.Plane {
	t.Helper()
	p := plane.Start(t, plane.Options{})
	p.Node(t, node, plane.NodeOptions{})
	p.CreateFile(t, manifest+"deviceclasses.yaml")
	p.CreateFile(t, manifest+"admission.yaml")
	p.Create(t, "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: kata-qemu-nvidia-gpu}\nhandler: kata\n")
	name := node
	_, err := p.Client().ResourceV1().ResourceSlices().Create(t.Context(), &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "board"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: dra.Driver, NodeName: &name, Devices: devices,
			Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	return p
}

// granted is what a pod got: the attributes of its devices by request.
type granted struct {
	requests   []string
	attributes map[string]map[resourceapi.QualifiedName]resourceapi.DeviceAttribute // of the last device of each
	configured int
}

func (g granted) same(attribute resourceapi.QualifiedName, a, b string) error {
	x, y := g.attributes[a][attribute], g.attributes[b][attribute]
	if x.StringValue == nil || y.StringValue == nil || *x.StringValue != *y.StringValue {
		return fmt.Errorf("%s and %s do not have the same %s: %v, %v", a, b, attribute, x, y)
	}
	return nil
}

func (g granted) count(of string, want int) error {
	n := 0
	for _, r := range g.requests {
		if r == of {
			n++
		}
	}
	if n != want {
		return fmt.Errorf("%d devices for %s, want %d: %v", n, of, want, g.requests)
	}
	return nil
}

// grant applies an example, waits for its pod to be scheduled, and ends it.
func grant(t *testing.T, p *plane.Plane, file string, devices []resourceapi.Device) granted {
	t.Helper()
	var pod *v1.Pod
	for _, o := range p.CreateFile(t, file) {
		if o.GetKind() == "Pod" {
			pod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace(), UID: types.UID(o.GetUID())}}
		}
	}
	if pod == nil {
		t.Fatalf("%s has no pod", file)
	}
	p.AwaitBound(t, pod)
	list, err := p.Client().ResourceV1().ResourceClaims(pod.Namespace).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].Status.Allocation == nil {
		t.Fatalf("there are %d claims, want one that is allocated", len(list.Items))
	}
	a := list.Items[0].Status.Allocation.Devices
	g := granted{attributes: map[string]map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{}, configured: len(a.Config)}
	for _, r := range a.Results {
		g.requests = append(g.requests, r.Request)
		at := slices.IndexFunc(devices, func(d resourceapi.Device) bool { return d.Name == r.Device })
		if at < 0 {
			t.Fatalf("got %s, which is not on the board", r.Device)
		}
		g.attributes[r.Request] = devices[at].Attributes
	}
	p.ForceDelete(t, pod)
	plane.Await(t, "the claim of "+file+" to end", func(ctx context.Context) error {
		list, err := p.Client().ResourceV1().ResourceClaims(pod.Namespace).List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("there are %d claims", len(list.Items))
		}
		return err
	})
	return g
}

// TestExamples: each is scheduled, and gets what its comment says.
func TestExamples(t *testing.T) {
	devices := board(t)
	p := cluster(t, devices)
	checks := map[string]func(granted) error{
		"single-gpu.yaml":   func(g granted) error { return g.count("gpu", 1) },
		"gpu-nic-pair.yaml": func(g granted) error { return g.same(root, "gpu", "nic") },
		"two-pairs.yaml": func(g granted) error {
			if err := g.same(root, "gpu-0", "nic-0"); err != nil {
				return err
			}
			return g.same(root, "gpu-1", "nic-1")
		},
		"whole-board.yaml": func(g granted) error {
			if err := g.count("gpus", 8); err != nil {
				return err
			}
			return g.count("switches", 4)
		},
		"alternatives.yaml": func(g granted) error {
			if _, known := g.attributes["gpu/h100"][numa]; !known {
				return fmt.Errorf("the devices are on no NUMA node: %v", g.attributes)
			}
			return g.count("gpu/h100", 2)
		},
		"group-node.yaml": func(g granted) error {
			if g.configured != 1 {
				return fmt.Errorf("the claim has %d configurations", g.configured)
			}
			return g.count("gpu", 1)
		},
	}
	files, err := filepath.Glob(claims + "*.yaml")
	must(t, err)
	for _, file := range files {
		name := filepath.Base(file)
		if name == "kustomization.yaml" {
			continue
		}
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			check, ok := checks[name]
			if !ok {
				t.Fatal("nobody knows what it is to get: add a row")
			}
			if err := check(grant(t, p, file, devices)); err != nil {
				t.Error(err)
			}
		})
	}
}
