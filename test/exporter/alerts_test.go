//go:build !kubernetes134

package exporter

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"kata-device-plugin/internal/claim"

	"kata-device-plugin/test/harness"
)

// TestAlerts brings each alert about that TestPrometheus does not, on a node of its own. A real Prometheus
// raises it, and no other one than what the same fault has to raise as well.
func TestAlerts(t *testing.T) {
	for _, s := range []struct {
		alert    string
		platform string
		also     []string
		happens  func(*node)
	}{
		{"PassthroughDeviceUnhealthy", "workstation", []string{"PassthroughNotOffered"}, companionTaken},
		{"PassthroughNotRegistered", "hgx-h100", nil, func(n *node) { n.startKubelet(); n.startExporter() }}, // without the plugin
		{"PassthroughNotOffered", "hgx-h100", []string{"PassthroughNotRegistered"}, pluginHangs},
		{"PassthroughTwoPlugins", "hgx-h100", nil, secondSocket},
		{"PassthroughContested", "hgx-h100", []string{"PassthroughNotOffered", "PassthroughNotRegistered"}, foreignList},
		{"PassthroughNotReleased", "hgx-h100", []string{"PassthroughCDIBroken", "PassthroughNotRegistered"}, claimOfNobody},
		{"PassthroughClaimDamaged", "hgx-h100", nil, damagedClaim},
		{"PassthroughSourceStale", "hgx-h100", []string{"PassthroughNotRegistered"}, func(n *node) { n.startExporter() }}, // without kubelet
		{"PassthroughCDIUnknown", "hgx-h100", nil, largeSpec},
		{"PassthroughStateOld", "hgx-h100", nil, frozen},
	} {
		t.Run(s.alert, func(t *testing.T) {
			n := newNode(t, s.platform)
			s.happens(n)
			p := startPrometheus(n)
			p.fires(s.alert)
			fired := p.query(`count by (alertname) (count_over_time(ALERTS{alertstate="firing"}[10m]))`, "alertname")
			for _, expected := range append(s.also, s.alert) {
				delete(fired, expected)
			}
			if len(fired) > 0 {
				t.Errorf("these have fired too: %v", fired)
			}
		})
	}
}

// TestEveryAlertFires: an alert that no test here brings about is one that nobody has seen.
func TestEveryAlertFires(t *testing.T) {
	rules, err := os.ReadFile(rulesFile)
	must(t, err)
	driven := ""
	for _, file := range []string{"alerts_test.go", "prometheus_test.go"} {
		text, err := os.ReadFile(file)
		must(t, err)
		driven += string(text)
	}
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllSubmatch(rules, -1)
	if len(alerts) == 0 {
		t.Fatal("there are no alerts")
	}
	for _, alert := range alerts {
		name := string(alert[1])
		if !strings.Contains(driven, `{"`+name+`", "`) && !strings.Contains(driven, `p.fires("`+name+`")`) {
			t.Errorf("no test brings %s about", name)
		}
	}
}

// runs starts everything, with what is amiss told after a second.
func (n *node) runs() {
	n.t.Helper()
	n.startKubelet()
	n.must(n.StartPlugin(n.ctx))
	n.must(n.AwaitDevices(n.ctx, harness.GPU, n.GPUs()))
	n.startExporter("--settle=1s")
	n.await("the plugin is registered", is(`kubelet_registered{resource="nvidia.com/gpu"}`, 1))
}

// companionTaken: another function of a GPU's IOMMU group gets a driver of the host's.
func companionTaken(n *node) {
	n.runs()
	for _, f := range n.Functions() {
		if f.Vendor == 0x10de && uint32(f.Class)>>8 == 0x0403 {
			n.must(n.Unbind(f.Address()))
			n.must(n.Bind(f.Address(), "snd_hda_intel"))
			return
		}
	}
	n.t.Fatal("no GPU has an audio function")
}

// pluginHangs: the plugin has the lock and its devices, and does not register with the next kubelet.
func pluginHangs(n *node) {
	n.runs()
	process, err := os.FindProcess(n.Plugin.PID())
	n.must(err)
	n.must(process.Signal(syscall.SIGSTOP))
	n.t.Cleanup(func() { _ = process.Signal(syscall.SIGCONT) }) // it is killed after that
	n.must(n.Kubelet.Stop())
	n.startKubelet()
}

// secondSocket: beside the plugin's socket there is one of another start of it, on which somebody listens.
func secondSocket(n *node) {
	n.runs()
	sockets, err := filepath.Glob(filepath.Join(n.Roots.DevicePlugins, "*-????????.sock"))
	n.must(err)
	if len(sockets) == 0 {
		n.t.Fatal("the plugin has no socket")
	}
	other := sockets[0][:len(sockets[0])-len("00000000.sock")] + "00000000.sock"
	l, err := net.Listen("unix", other)
	n.must(err)
	n.t.Cleanup(func() { _ = l.Close() }) // with the node's directory
}

// foreignList: another plugin registers the resource with names of its own.
func foreignList(n *node) {
	n.runs()
	const name = "nvidia-gpu.sock"
	l, err := net.Listen("unix", filepath.Join(n.Roots.DevicePlugins, name))
	n.must(err)
	server := grpc.NewServer()
	v1beta1.RegisterDevicePluginServer(server, &foreign{})
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l) // until it is stopped
	}()
	n.t.Cleanup(func() { server.Stop(); <-served })
	conn, err := grpc.NewClient("unix://"+filepath.Join(n.Roots.DevicePlugins, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	n.must(err)
	defer conn.Close()
	_, err = v1beta1.NewRegistrationClient(conn).Register(n.ctx, &v1beta1.RegisterRequest{Version: v1beta1.Version, Endpoint: name, ResourceName: harness.GPU})
	n.must(err)
	n.must(n.Kubelet.Await(n.ctx, func() bool { return slices.Equal(n.Kubelet.Allocatable(harness.GPU), []string{"GPU-1"}) }))
}

// foreign is a plugin of somebody else.
type foreign struct {
	v1beta1.UnimplementedDevicePluginServer
}

func (*foreign) GetDevicePluginOptions(context.Context, *v1beta1.Empty) (*v1beta1.DevicePluginOptions, error) {
	return &v1beta1.DevicePluginOptions{}, nil
}

func (*foreign) ListAndWatch(_ *v1beta1.Empty, s grpc.ServerStreamingServer[v1beta1.ListAndWatchResponse]) error {
	if err := s.Send(&v1beta1.ListAndWatchResponse{Devices: []*v1beta1.Device{{ID: "GPU-1", Health: v1beta1.Healthy}}}); err != nil {
		return err
	}
	<-s.Context().Done()
	return nil
}

// claims is the driver's store on a node that only has its records.
func (n *node) claims() (*claim.Store, string) {
	n.t.Helper()
	dir := filepath.Join(n.Dir, "var/lib/kubelet/plugins/vfio.katacontainers.io/claims")
	n.must(os.MkdirAll(filepath.Dir(dir), 0o750))
	store, err := claim.Open(dir)
	n.must(err)
	return store, dir
}

// claimOfNobody: there is a record of a claim, and no pod has it. That it has no CDI spec, and that there is
// no plugin, which would offer what has no spec, are the other alerts.
func claimOfNobody(n *node) {
	store, _ := n.claims()
	n.startKubelet()
	n.startExporter("--settle=1s")
	// Before that, nobody could tell whether kubelet has yet to name a pod that has the claim.
	n.await("kubelet has answered", is(`source_up{source="pod_resources"}`, 1))
	gpu := n.GPUs()[0]
	unlock, err := store.Lock(n.ctx)
	n.must(err)
	n.must(store.Put(claim.Record{
		UID: "0b9cdd2e-6f0f-4f0e-9a53-0c8b0a1c2d3e", Namespace: "default", Name: "left", Boot: "boot-1", State: claim.Prepared,
		Since: time.Now(), Changed: time.Now(),
		Devices: []claim.Device{{
			Pool: "node-1", Name: "gpu-" + strings.NewReplacer(":", "-", ".", "-").Replace(gpu), Address: gpu, Group: []string{gpu},
			Requests: []string{"gpu"}, CDI: []string{"vfio.katacontainers.io/claim=left-gpu"}, Nodes: []string{n.Cdevs()[gpu]},
		}},
	}))
	n.must(unlock())
}

// damagedClaim: a claim's record is torn.
func damagedClaim(n *node) {
	_, dir := n.claims()
	n.must(os.WriteFile(filepath.Join(dir, "0b9cdd2e-6f0f-4f0e-9a53-0c8b0a1c2d3e.json"), []byte("{"), 0o600))
	n.runs()
}

// largeSpec: somebody has a CDI spec that is too large to be looked at.
func largeSpec(n *node) {
	n.runs()
	n.must(os.WriteFile(filepath.Join(n.Roots.CDI, "other.json"), []byte(strings.Repeat(" ", 300<<10)), 0o644))
}

// frozen: the exporter answers, and has stopped to look. It was not made to hang: what it has told once is
// told from then on, by the test.
func frozen(n *node) {
	n.runs()
	req, err := http.NewRequestWithContext(n.ctx, http.MethodGet, n.url+"metrics", nil)
	n.must(err)
	resp, err := http.DefaultClient.Do(req)
	n.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	n.must(err)
	kind := resp.Header.Get("Content-Type")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(text) // Prometheus may have gone
	}))
	n.t.Cleanup(server.Close)
	n.url = server.URL + "/"
}
