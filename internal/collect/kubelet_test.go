package collect_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// answers is a kubelet that answers, and counts what it is asked.
type answers struct {
	podresources.UnimplementedPodResourcesListerServer
	lists, allocatables, others atomic.Int32
}

func (a *answers) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	a.lists.Add(1)
	device := func(id string) *podresources.ContainerDevices {
		return &podresources.ContainerDevices{ResourceName: "nvidia.com/gpu", DeviceIds: []string{id}}
	}
	return &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{
		{Namespace: "team-red", Name: "trainer-0", Containers: []*podresources.ContainerResources{
			{Name: "main", Devices: []*podresources.ContainerDevices{device("0000:01:00.1"), device("0000:01:00.0")}},
		}},
		{Namespace: "team-blue", Name: "llm", Containers: []*podresources.ContainerResources{
			{Name: "server", DynamicResources: []*podresources.DynamicResource{{
				ClaimNamespace: "team-blue", ClaimName: "two-gpus", ClaimResources: []*podresources.ClaimResource{{
					DriverName: "vfio.katacontainers.io", PoolName: "worker-7", DeviceName: "gpu-0000-01-00-0",
					CdiDevices: []*podresources.CDIDevice{{Name: "vfio.katacontainers.io/claim=9f0c1f0e-5f63-4b3e-8a3b-000000000001-gpu-0000-01-00-0"}},
				}},
			}}},
		}},
	}}, nil
}

func (a *answers) GetAllocatableResources(context.Context, *podresources.AllocatableResourcesRequest) (*podresources.AllocatableResourcesResponse, error) {
	a.allocatables.Add(1)
	return &podresources.AllocatableResourcesResponse{Devices: []*podresources.ContainerDevices{
		{ResourceName: "nvidia.com/gpu", DeviceIds: []string{"0000:01:00.1"}}, {ResourceName: "nvidia.com/gpu", DeviceIds: []string{"0000:01:00.0"}},
	}}, nil
}

func (a *answers) Get(context.Context, *podresources.GetPodResourcesRequest) (*podresources.GetPodResourcesResponse, error) {
	a.others.Add(1)
	return &podresources.GetPodResourcesResponse{}, nil
}

// serve makes kubelet answer on the node.
func (r *rig) serve(t *testing.T) *answers {
	t.Helper()
	l := r.listen(t, "/var/lib/kubelet/pod-resources/kubelet.sock")
	a, server := &answers{}, grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, a)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		must(t, <-done)
	})
	return a
}

func (r *rig) listen(t *testing.T, name string) net.Listener {
	t.Helper()
	at := filepath.Join(r.root, name)
	must(t, os.MkdirAll(filepath.Dir(at), 0o755))
	dir, err := os.Open(filepath.Dir(at)) // the whole path may be too long for a socket
	must(t, err)
	t.Cleanup(func() { must(t, dir.Close()) })
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(at)))
	must(t, err)
	return l
}

// plugin is a server that hears what is said to it.
type plugin struct {
	connections, words atomic.Int32
}

// plugin listens on the node, and says how often somebody came and how much was said.
func (r *rig) plugin(t *testing.T, name string) *plugin {
	t.Helper()
	p, l, done := &plugin{}, r.listen(t, name), make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.connections.Add(1)
			n, _ := io.Copy(io.Discard, conn) // until the other side leaves
			p.words.Add(int32(n))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return p
}

// dead leaves the socket of a server that has gone.
func (r *rig) dead(t *testing.T, name string) {
	t.Helper()
	l := r.listen(t, name)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	must(t, l.Close())
}

// record is kubelet's record of a container, with an answer that has a secret in it.
func record(t *testing.T) string {
	t.Helper()
	data, err := proto.Marshal(&pluginapi.ContainerAllocateResponse{
		Envs:        map[string]string{"TOKEN": "s3cr3t"},
		Annotations: map[string]string{"other": "s3cr3t", "cdi.k8s.io/x": "nvidia.com/gpu=0000:01:00.0"},
		Devices:     []*pluginapi.DeviceSpec{{HostPath: "/dev/vfio/2", ContainerPath: "/dev/vfio/2", Permissions: "rwm"}},
		Mounts:      []*pluginapi.Mount{{HostPath: "/var/lib/kubelet/pods/3c1a5c33-1111-4222-8333-444444444444/etc", ContainerPath: "/etc/x"}},
		CdiDevices:  []*pluginapi.CDIDevice{{Name: "nvidia.com/gpu=0000:01:00.0"}},
	})
	must(t, err)
	return fmt.Sprintf(`{"Data":{"PodDeviceEntries":[
{"PodUID":"8fd1e5a0b6a14a6c9d2f0a5a9b7c1d2e","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["0000:01:00.1"]},"AllocResp":null},
{"PodUID":"3c1a5c33-1111-4222-8333-444444444444","ContainerName":"main","ResourceName":"nvidia.com/gpu","DeviceIDs":{"0":["0000:01:00.0"]},"AllocResp":%q}],
"RegisteredDevices":{"nvidia.com/gpu":["0000:01:00.1","0000:01:00.0"]}},"Checksum":17765432101234567890}`, base64.StdEncoding.EncodeToString(data))
}
