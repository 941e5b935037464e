//go:build node

package cluster

import (
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/peer"
)

// An example that ships, and one that is made of it.
const (
	gpuNICPair = "gpu-nic-pair"
	gpuVFPair  = "gpu-vf-pair"
)

// draAlignment: pods get a GPU and a network controller, or a VF, below one PCIe root, and their
// containers see just the nodes of these. Two of eight roots have a controller to give, and neither is
// that of a GPU that would be first otherwise; the second pod gets what the first one leaves, and
// the third one waits for such a pair, though GPUs are free.
func draAlignment(c *cluster) {
	w := c.joinDRA("dra-alignment", hgxH100)
	gpus := w.gpus()
	nics := map[string]string{} // by root
	for _, id := range []string{gpus[2], gpus[5]} {
		nics[w.root(id)] = w.handOver(w.root(id))
	}
	vfs := w.addVFs(w.root(gpus[6]))
	w.driverReady()
	c.template(gpuNICPair)
	c.vfTemplate()

	taken := map[string]string{} // NIC to GPU
	for _, name := range []string{"pair-1", "pair-2"} {
		c.pod(claimPod(name, gpuNICPair))
		id, nic := w.pair(name)
		if nics[w.root(id)] != nic || taken[nic] != "" {
			c.t.Errorf("%s has %s with %s; the controllers are %v, taken are %v", name, id, nic, nics, taken)
		}
		taken[nic] = id
	}
	if len(taken) != len(nics) {
		c.t.Errorf("two pods have %v, want all of %v", slices.Collect(maps.Keys(taken)), nics)
	}
	c.pod(claimPod("pair-3", gpuNICPair))
	c.pending("pair-3", "cannot allocate all claims")
	c.pod(claimPod("vf", gpuVFPair))
	if id, vf := w.pair("vf"); id != gpus[6] || !slices.Contains(vfs, vf) {
		c.t.Errorf("the pod has %s with %s, want %s with one of %v", id, vf, gpus[6], vfs)
	}
	c.remove("pair-1")
	if id, nic := w.pair("pair-3"); nics[w.root(id)] != nic {
		c.t.Errorf("the third pod has %s with %s; the controllers are %v", id, nic, nics)
	}
}

// root is the PCIe root complex of a function.
func (w *worker) root(id string) string {
	w.t.Helper()
	root, _, _ := strings.Cut(w.function(id).Path, "/")
	return root
}

// pair waits until a pod runs that has a GPU and a network function, and returns them.
func (w *worker) pair(name string) (gpu, network string) {
	w.t.Helper()
	got := w.claimed(name)
	gpus := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return !slices.Contains(w.gpus(), id) })
	networks := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return slices.Contains(w.gpus(), id) })
	if len(gpus) != 1 || len(networks) != 1 {
		w.t.Fatalf("pod %s has %v, want a GPU and a network function", name, got)
	}
	if w.root(gpus[0]) != w.root(networks[0]) {
		w.t.Errorf("pod %s has %v, which are below %s and %s", name, got, w.root(gpus[0]), w.root(networks[0]))
	}
	return gpus[0], networks[0]
}

// adapter is the network controller below a root.
func (w *worker) adapter(root string) sim.Function {
	w.t.Helper()
	all := w.Machine.Functions()
	at := slices.IndexFunc(all, func(f sim.Function) bool {
		return f.Driver == "mlx5_core" && strings.HasPrefix(f.Path, root+"/")
	})
	if at < 0 {
		w.t.Fatalf("there is no network controller below %s", root)
	}
	return all[at]
}

// handOver binds the network controller below a root to VFIO, and returns its address.
func (w *worker) handOver(root string) string {
	w.t.Helper()
	a := w.adapter(root).Address()
	w.must(w.Machine.Unbind(a))
	w.must(w.Machine.Bind(a, "vfio-pci"))
	return a.String()
}

// addVFs puts another network controller below a root, with two VFs that are bound to VFIO, and
// returns the addresses of these.
func (w *worker) addVFs(root string) (ids []string) {
	w.t.Helper()
	f := w.adapter(root)
	f.Path = path.Join(root, strings.TrimPrefix(root, "pci")+":05.0", "0000:f8:00.0")
	f.TotalVFs, f.VFDevice, f.Group, f.NIC = 4, 0x101e, "900", nil
	w.must(w.Machine.Add(f))
	w.must(w.Machine.Bind(f.Address(), "mlx5_core"))
	w.must(w.Machine.SetVFs(f.Address(), 2, "vfio-pci"))
	for _, vf := range w.Machine.VFs(f.Address()) {
		ids = append(ids, vf.String())
	}
	return ids
}

// vfTemplate makes the template of a GPU and a VF of that of a GPU and a network controller.
func (c *cluster) vfTemplate() {
	c.t.Helper()
	templates := c.Client().ResourceV1().ResourceClaimTemplates(peer.Namespace)
	pair, err := templates.Get(c.ctx, gpuNICPair, metav1.GetOptions{})
	c.must(err)
	vf := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: gpuVFPair}, Spec: *pair.Spec.DeepCopy()}
	at := slices.IndexFunc(vf.Spec.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool { return r.Name == "nic" })
	vf.Spec.Spec.Devices.Requests[at].Exactly.DeviceClassName = "vf.vfio.katacontainers.io"
	_, err = templates.Create(c.ctx, vf, metav1.CreateOptions{})
	c.must(err)
	c.t.Cleanup(func() {
		if err := templates.Delete(context.Background(), gpuVFPair, metav1.DeleteOptions{}); err != nil {
			c.t.Error(fmt.Errorf("remove template %s: %w", gpuVFPair, err))
		}
	})
}
