package nicplugin

import (
	"context"
	stdnet "net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	ourcdi "kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/podresources"
	"kata-device-plugin/internal/sim"
)

// TestRenamed: a pool gets another name while a pod has one of its devices. The device is not
// handed out a second time under the new name until it is free.
func TestRenamed(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.Start()
	p := n.run()
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	n.hold(map[string][]string{vfio: {"0000:65:00.4"}})
	n.configure(strings.Replace(all, `"vfio"`, `"dpdk"`, 1))
	n.awaitHealthy("intel.com/dpdk", "0000:65:00.3")
	n.awaitHealthy(vfio)
	n.awaitLog(p, "msg=unhealthy", "intel.com/dpdk", "0000:65:00.4", "HST042", vfio)
	if _, err := n.Allocate("intel.com/dpdk", "0000:65:00.4"); err == nil || !strings.Contains(err.Error(), "HST042") {
		t.Errorf("got %v", err)
	}
	// kubelet repeats the answer when the container is started again, with its CDI name.
	if got := n.spec(vfio); !slices.Contains(got, "0000:65:00.4 /dev/vfio/42") {
		t.Errorf("the old name stands for %q", got)
	}
	// A restart of the plugin forgets neither.
	must(t, p.stop())
	n.Forget()
	p = n.run()
	n.awaitLog(p, "msg=unhealthy", "intel.com/dpdk", "0000:65:00.4", "HST042")
	n.Await("the old spec to have what is held", func() bool { return slices.Equal(n.spec(vfio), []string{"0000:65:00.4 /dev/vfio/42"}) })
	n.hold(nil)
	n.happened()
	n.awaitHealthy("intel.com/dpdk", "0000:65:00.3", "0000:65:00.4")
	n.Await("the old spec to go", func() bool { return n.spec(vfio) == nil })
}

// spec is what the CDI spec of a resource names, each with its nodes; nil for no spec.
func (n *node) spec(resource string) []string {
	spec, err := cdi.ReadSpec(filepath.Join(n.roots.CDI, ourcdi.FileName("kata.nic.", resource)), 0)
	if err != nil {
		return nil
	}
	var all []string
	for _, d := range spec.Devices {
		text := d.Name
		for _, node := range d.ContainerEdits.DeviceNodes {
			text += " " + node.Path
		}
		all = append(all, text)
	}
	return all
}

// TestRenamedJustGranted: kubelet's record is behind its back, since kubelet writes it when it
// has the answers for the whole container.
func TestRenamedJustGranted(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.hold(nil)
	n.Start()
	n.run()
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	_, err := n.Allocate(vfio, "0000:65:00.4")
	must(t, err)
	n.configure(strings.Replace(all, `"vfio"`, `"dpdk"`, 1))
	n.awaitHealthy("intel.com/dpdk", "0000:65:00.3")
	if got := n.spec(vfio); !slices.Contains(got, "0000:65:00.4 /dev/vfio/42") {
		t.Errorf("the old name stands for %q", got)
	}
}

// TestRenamedStaleRecord: kubelet's record has a pod that has ended, for as long as no other
// is admitted. kubelet itself knows better.
func TestRenamedStaleRecord(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.Start()
	n.run()
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	n.hold(map[string][]string{vfio: {"0000:65:00.3", "0000:65:00.4"}})
	n.answer(vfio, "0000:65:00.3")
	n.configure(strings.Replace(all, `"vfio"`, `"dpdk"`, 1))
	n.awaitHealthy("intel.com/dpdk", "0000:65:00.4")
}

// answer is kubelet's PodResources service: a pod has devices.
func (n *node) answer(resource string, ids ...string) {
	n.t.Helper()
	must(n.t, os.MkdirAll(n.roots.PodResources, 0o755))
	l, err := stdnet.Listen("unix", filepath.Join(n.roots.PodResources, podresources.SocketName))
	must(n.t, err)
	server := grpc.NewServer()
	api.RegisterPodResourcesListerServer(server, lister{resource: resource, ids: ids})
	go func() { _ = server.Serve(l) }() // ends with Stop
	n.t.Cleanup(server.Stop)
}

type lister struct {
	api.UnimplementedPodResourcesListerServer
	resource string
	ids      []string
}

func (l lister) List(context.Context, *api.ListPodResourcesRequest) (*api.ListPodResourcesResponse, error) {
	return &api.ListPodResourcesResponse{PodResources: []*api.PodResources{{Name: "p", Containers: []*api.ContainerResources{
		{Name: "c", Devices: []*api.ContainerDevices{{ResourceName: l.resource, DeviceIds: l.ids}}},
	}}}}, nil
}

// TestBadStart: a plugin that starts with a configuration that is not usable takes nothing from
// what an earlier life left for running pods, nor does one without any.
func TestBadStart(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.Start()
	p := n.run()
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	n.hold(map[string][]string{vfio: {"0000:65:00.3"}})
	must(t, p.stop())
	n.Forget()
	n.configure("{")
	p = n.run()
	n.awaitLog(p, "level=ERROR", "CFG001")
	n.happened()
	n.happened()
	n.awaitLog(p, "level=ERROR", "CFG001")
	if got := n.spec(vfio); len(got) != 2 {
		t.Errorf("after a bad start: %q", got)
	}
	must(t, p.stop(), os.Remove(n.config))
	p = n.run()
	n.awaitLog(p, "msg=ready")
	n.Await("what is held", func() bool { return slices.Equal(n.spec(vfio), []string{"0000:65:00.3 /dev/vfio/41"}) })
	// Its node is another one, or none: then it is not the pod's device any more.
	must(t, n.Unbind(address(t, "0000:65:00.3")))
	n.happened()
	n.Await("nothing", func() bool { return n.spec(vfio) == nil })
}
