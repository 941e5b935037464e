//go:build !kubernetes134

package dra

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/test/plane"
)

const (
	examples  = "../../deploy/examples/dra/"
	onRoot    = "resource.kubernetes.io/pcieRoot"
	onNode    = "resource.kubernetes.io/numaNode"
	kataClass = "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: kata-qemu-nvidia-gpu}\nhandler: kata\n"
)

// granted is what an example got.
type granted struct {
	requests   []string
	devices    map[string]resourceapi.Device // the last one of each request
	nodes      []string
	configured int
}

// same complains unless the devices of two requests have an attribute in common.
func (g granted) same(attribute resourceapi.QualifiedName, a, b string) error {
	x, y := g.devices[a].Attributes[attribute], g.devices[b].Attributes[attribute]
	if x.StringValue == nil || y.StringValue == nil || *x.StringValue != *y.StringValue {
		return fmt.Errorf("%s and %s do not have the same %s: %v, %v", a, b, attribute, x, y)
	}
	return nil
}

// count complains unless a request has so many devices.
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

// checks say what each example is to get.
func checks() map[string]func(granted) error {
	return map[string]func(granted) error{
		"single-gpu":   func(g granted) error { return g.count("gpu", 1) },
		"gpu-nic-pair": func(g granted) error { return g.same(onRoot, "gpu", "nic") },
		"two-pairs": func(g granted) error {
			if err := g.same(onRoot, "gpu-0", "nic-0"); err != nil {
				return err
			}
			return g.same(onRoot, "gpu-1", "nic-1")
		},
		"whole-board": func(g granted) error {
			if err := g.count("gpus", 8); err != nil {
				return err
			}
			return g.count("switches", 4)
		},
		"alternatives": func(g granted) error {
			if _, known := g.devices["gpu/h100"].Attributes[onNode]; !known {
				return fmt.Errorf("the devices are on no NUMA node: %v", g.devices)
			}
			return g.count("gpu/h100", 2)
		},
		"group-node": func(g granted) error {
			if g.configured != 1 || len(g.nodes) != 1 || strings.Contains(g.nodes[0], "/devices/") {
				return fmt.Errorf("%d configurations, and the nodes %v", g.configured, g.nodes)
			}
			return g.count("gpu", 1)
		},
	}
}

// TestExamples: each pod of deploy/examples runs, with what its comment says, and leaves nothing.
func TestExamples(t *testing.T) {
	p := start(t, plane.Options{})
	p.Create(t, kataClass)
	m := join(t, p, "node-a", "hgx-h100")
	for _, f := range m.hw.Functions() {
		if f.Class.Sub() == 0x0207 {
			must(t, m.hw.Unbind(f.Address()), m.hw.Bind(f.Address(), "vfio-pci"))
		}
	}
	m.run()
	files, err := filepath.Glob(examples + "*.yaml")
	must(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		if name == "kustomization" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			check, known := checks()[name]
			if !known {
				t.Fatal("nobody knows what it is to get: add a row")
			}
			m.t = t
			if err := check(m.grant(file)); err != nil {
				t.Error(err)
			}
		})
	}
}

// grant applies an example, and ends its pod when it has run.
func (m *machine) grant(file string) granted {
	m.t.Helper()
	var pod *v1.Pod
	for _, o := range m.plane.CreateFile(m.t, file) {
		if o.GetKind() == "Pod" {
			pod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID()}}
		}
	}
	if pod == nil {
		m.t.Fatalf("%s has no pod", file)
	}
	pod = m.plane.AwaitPhase(m.t, pod, v1.PodRunning)
	a := claimOf(m.t, m.plane, pod).Status.Allocation.Devices
	g := granted{devices: map[string]resourceapi.Device{}, configured: len(a.Config)}
	published := m.devices()
	for _, r := range a.Results {
		g.requests = append(g.requests, r.Request)
		g.devices[r.Request] = published[r.Device]
	}
	names, err := m.CDIDevices(pod, pod.Spec.Containers[0].Name)
	must(m.t, err)
	g.nodes, err = m.resolve(names)
	must(m.t, err)
	if len(g.nodes) != len(g.requests) {
		m.t.Errorf("it has the nodes %v for %v", g.nodes, g.requests)
	}
	m.plane.Delete(m.t, pod)
	m.plane.AwaitGone(m.t, pod)
	m.awaitEmpty()
	return g
}
