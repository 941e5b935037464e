package cli_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/cli"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
)

// subfunction is the name of one, by which nobody sees where it is.
const subfunction = "mlx5_core.sf.4"

// kubelet says that a pod has the subfunction, when it has been told to speak.
type kubelet struct {
	podresources.UnimplementedPodResourcesListerServer
	speak chan struct{}
}

func (k kubelet) List(
	context.Context, *podresources.ListPodResourcesRequest,
) (*podresources.ListPodResourcesResponse, error) {
	<-k.speak
	has := &podresources.ContainerDevices{ResourceName: "nvidia.com/sf", DeviceIds: []string{subfunction}}
	c := &podresources.ContainerResources{Name: "c", Devices: []*podresources.ContainerDevices{has}}
	pod := &podresources.PodResources{Namespace: "team", Name: "train", Containers: []*podresources.ContainerResources{c}}
	return &podresources.ListPodResourcesResponse{PodResources: []*podresources.PodResources{pod}}, nil
}

func (kubelet) GetAllocatableResources(
	context.Context, *podresources.AllocatableResourcesRequest,
) (*podresources.AllocatableResourcesResponse, error) {
	return &podresources.AllocatableResourcesResponse{}, nil
}

// answering is the root of a simulated node with that kubelet.
func answering(t *testing.T, speak chan struct{}) (root string) {
	t.Helper()
	n, root := simtest.Node(t, simtest.Preset(t, "sriov-cpu"))
	nic := &sim.NIC{Interfaces: []sim.Interface{{Name: "sf88"}}}
	name, err := n.AddSF(pci.Address{Bus: 0xb1}, sim.SF{ID: 4, Number: 88, NIC: nic})
	must(t, err)
	if name != subfunction {
		t.Fatalf("it is called %s", name)
	}
	sockets := filepath.Join(root, "var/lib/kubelet/pod-resources")
	must(t, os.MkdirAll(sockets, 0o755))
	l, err := net.Listen("unix", filepath.Join(sockets, "kubelet.sock"))
	must(t, err)
	server, done := grpc.NewServer(), make(chan error, 1)
	podresources.RegisterPodResourcesListerServer(server, kubelet{speak: speak})
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		must(t, <-done)
	})
	return root
}

// TestHoldersHere: what the NIC plugin's configuration declares is known of this node too, so that a
// subfunction has the address of its function.
func TestHoldersHere(t *testing.T) {
	speak := make(chan struct{})
	close(speak)
	root := answering(t, speak)
	config := filepath.Join(t.TempDir(), "config.json")
	must(t, os.WriteFile(config, []byte(`{"resourceList": [{"resourceName": "sf", "resourcePrefix": "nvidia.com",
		"deviceType": "auxNetDevice", "selectors": {"auxTypes": ["sf"]}}]}`), 0o600))
	for want, args := range map[string][]string{
		" " + subfunction + " ":                {"holders"},
		" 0000:b1:00.0 (" + subfunction + ") ": {"holders", "--nic-config", config},
	} {
		var out, wrong bytes.Buffer
		code := cli.Main(t.Context(), cli.Env{
			Name: "kubectl-device", Args: args, Stdout: &out, Stderr: &wrong, Getenv: os.Getenv, Host: root,
		})
		if code != 0 || wrong.Len() > 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%v exits with %d and says\n%s%s\nwithout %q", args, code, &out, &wrong, want)
		}
	}
}

// TestProgressHere: whoever waits at a terminal for a slow node is told so.
func TestProgressHere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node.snapshot")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"snapshot", "-o", file}, "reading this node ..."},
		{[]string{"check", "--host", "--fail-on", "never"}, "reading this node ..."},
		{[]string{"inventory"}, "asking kubelet who has which device ..."},
		{[]string{"holders"}, "asking kubelet who has which device ..."},
	} {
		t.Run(test.args[0], func(t *testing.T) {
			t.Parallel()
			speak := make(chan struct{})
			root := answering(t, speak)
			of, end := terminal(t)
			ended := make(chan int)
			go func() {
				ended <- cli.Main(t.Context(), cli.Env{
					Name: "kubectl-device", Args: test.args, Stdout: io.Discard, Stderr: of, Getenv: os.Getenv, Host: root, Watched: true,
				})
			}()
			shown(t, end, test.want)
			close(speak)
			if code := <-ended; code != 0 {
				t.Errorf("it exits with %d", code)
			}
		})
	}
}
