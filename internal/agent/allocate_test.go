package agent

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	ourcdi "kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/lookout"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sysfs"
)

func address(t *testing.T, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAllocateRefusals: what cannot be handed out is refused with its name and the reason.
func TestAllocateRefusals(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	n.run(t)
	n.awaitAll()
	const gone = "0000:53:00.0"
	must(t, n.Unbind(address(t, gone)))
	n.Await("the device to be unhealthy", func() bool { return len(n.Healthy(gpu)) == 7 })
	for _, c := range []struct {
		name string
		ids  []string
		code codes.Code
		want []string // in the message
	}{
		{"unknown", []string{"0000:64:00.0", "0000:ff:00.0"}, codes.NotFound, []string{"0000:ff:00.0", "not a device that"}},
		{"foreign form", []string{"GPU-5f3a"}, codes.NotFound, []string{"GPU-5f3a", "another plugin"}},
		{"of the other resource", []string{"0000:05:00.0"}, codes.NotFound, []string{"0000:05:00.0", nvswitch}},
		{"unhealthy", []string{gone}, codes.FailedPrecondition, []string{gone, "HST032", "has left"}},
		{"twice", []string{"0000:64:00.0", "0000:64:00.0"}, codes.InvalidArgument, []string{"0000:64:00.0", "twice"}},
		{"none", nil, codes.InvalidArgument, []string{"no device"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := n.Allocate(gpu, c.ids...)
			if status.Code(err) != c.code {
				t.Errorf("code %v, want %v: %v", status.Code(err), c.code, err)
			}
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
		})
	}
}

// TestAllocateContainers: one response a container, in order, and a device in two
// containers of one request is refused.
func TestAllocateContainers(t *testing.T) {
	n := newNode(t, platform(t, "gb200"))
	n.Start()
	n.run(t)
	n.awaitAll()
	ask := func(containers ...[]string) (*pluginapi.AllocateResponse, error) {
		req := &pluginapi.AllocateRequest{}
		for _, ids := range containers {
			req.ContainerRequests = append(req.ContainerRequests, &pluginapi.ContainerAllocateRequest{DevicesIds: ids})
		}
		return n.Client(gpu).Allocate(context.Background(), req)
	}
	resp, err := ask([]string{"0009:01:00.0"}, []string{"0019:01:00.0", "0008:01:00.0"})
	must(t, err)
	var names [][]string
	for _, c := range resp.ContainerResponses {
		var l []string
		for i, d := range c.CdiDevices {
			l = append(l, d.Name)
			if len(c.Devices) != len(c.CdiDevices) || c.Devices[i].HostPath != c.Devices[i].ContainerPath || c.Devices[i].Permissions != "rw" {
				t.Errorf("devices %v for %v", c.Devices, c.CdiDevices)
			}
		}
		names = append(names, l)
	}
	want := [][]string{{gpu + "=0009:01:00.0"}, {gpu + "=0019:01:00.0", gpu + "=0008:01:00.0"}}
	if !slices.EqualFunc(names, want, slices.Equal) {
		t.Errorf("got %v, want %v", names, want)
	}
	if _, err := ask([]string{"0009:01:00.0"}, []string{"0009:01:00.0"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("one device for two containers: %v", err)
	}
}

// TestAllocateLooks: an answer comes from a fresh look, also when no event has told of
// the change. The agent here gets no events at all.
func TestAllocateLooks(t *testing.T) {
	companion := func(t *testing.T, n *node) { must(t, n.Bind(address(t, "0000:01:00.1"), "snd_hda_intel")) }
	for _, c := range []struct {
		name, platform, id string
		prepare, change    func(*testing.T, *node)
		want               string // in the refusal; "" for an answer with the present node
	}{
		{name: "unbound", platform: "hgx-b200", change: func(t *testing.T, n *node) {
			must(t, n.Unbind(address(t, n.Bound(0x0302)[0])))
		}, want: "has left"},
		{name: "number changed", platform: "hgx-b200", change: func(t *testing.T, n *node) {
			a, b := address(t, n.Bound(0x0302)[0]), address(t, n.Bound(0x0302)[1])
			must(t, n.Unbind(a))
			must(t, n.Unbind(b))
			must(t, n.Bind(b, "vfio-pci"))
			must(t, n.Bind(a, "vfio-pci"))
		}},
		{name: "companion taken by the host", platform: "workstation", prepare: func(t *testing.T, n *node) {
			must(t, n.Unbind(address(t, "0000:01:00.1")))
		}, change: companion, want: "HST002"},
		{name: "virtual functions", platform: "rtx-pro-6000", change: func(t *testing.T, n *node) {
			must(t, n.SetVFs(address(t, n.Bound(0x0302)[0]), 1, ""))
		}, want: "HST029"},
		{name: "CDI spec deleted", platform: "hgx-b200", change: func(t *testing.T, n *node) {
			must(t, os.Remove(filepath.Join(n.roots.CDI, ourcdi.FileName("kata.", gpu))))
		}},
		{name: "CDI spec edited", platform: "hgx-b200", change: func(t *testing.T, n *node) {
			must(t, os.WriteFile(filepath.Join(n.roots.CDI, ourcdi.FileName("kata.", gpu)), []byte("{}"), 0o644))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, platform(t, c.platform))
			if c.prepare != nil {
				c.prepare(t, n)
			}
			n.Start()
			n.run(t, func(a *Agent) { a.times.Quiet, a.times.Most = 1<<40, 1<<40 })
			n.awaitAll()
			id := n.Bound(0x0302, 0x0300)[0]
			c.change(t, n)
			resp, err := n.Allocate(gpu, id)
			if c.want != "" {
				if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), id) {
					t.Errorf("got %v, want %s", err, c.want)
				}
				return
			}
			must(t, err)
			m := model{node: n}
			n.Await("the spec", func() bool { return m.resolves(gpu, n.Bound(0x0302)) })
			number, _ := n.Cdev(address(t, id))
			if got := resp.Devices[0].HostPath; !strings.HasSuffix(got, "/vfio"+string(rune('0'+number))) {
				t.Errorf("%s allocated as %s, and it is vfio%d", id, got, number)
			}
		})
	}
}

// TestPrefer: the devices of one NUMA node stay together.
func TestPrefer(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	n.Start()
	n.run(t)
	n.awaitAll()
	all := n.Bound(0x0302)
	resp, err := n.Client(gpu).GetPreferredAllocation(context.Background(), &pluginapi.PreferredAllocationRequest{
		ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{
			{AvailableDeviceIDs: all, AllocationSize: 4, MustIncludeDeviceIDs: []string{"0000:a8:00.0"}},
			{AvailableDeviceIDs: append([]string{"GPU-foreign"}, all[:3]...), AllocationSize: 3},
		},
	})
	must(t, err)
	got := resp.ContainerResponses[0].DeviceIDs
	if want := []string{"0000:a8:00.0", "0000:97:00.0", "0000:b9:00.0", "0000:ca:00.0"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := resp.ContainerResponses[1].DeviceIDs; !slices.Equal(got, all[:3]) {
		t.Errorf("got %v, want %v", got, all[:3])
	}
}

// TestAnswerOvertakesLook: a device comes back and is granted while a look is under way that
// has found it missing. The look is not acted on: the spec keeps the device that was granted.
func TestAnswerOvertakesLook(t *testing.T) {
	const id = "0000:53:00.0"
	for _, c := range []struct {
		name    string
		granted []string // while the look is under way
		adopted bool
	}{
		{name: "nothing is granted", adopted: true},
		{name: "another is granted", granted: []string{"0000:64:00.0"}, adopted: true},
		{name: "the device is granted", granted: []string{id}},
		{name: "the device and another are granted", granted: []string{"0000:64:00.0", id}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, platform(t, "hgx-h100"))
			a := New(n.prog, slog.New(slog.DiscardHandler))
			sys, err := sysfs.Open(n.prog.Roots.Sys)
			must(t, err)
			defer sys.Close()
			a.open(sys)
			defer a.lookout.Close()
			now := time.Now()
			a.look(t.Context(), lookout.Full, now)
			defer func() {
				for _, o := range a.offers {
					must(t, o.stop())
				}
			}()
			o := a.find(gpu)
			device := resolved(o.byID[id])

			a.answers.forget()
			must(t, n.Unbind(address(t, id)))
			seen := a.lookout.Observe(lookout.Full)
			must(t, n.Bind(address(t, id), "vfio-pci"))
			if len(c.granted) > 0 {
				if _, err := a.allocate(t.Context(), o, c.granted); err != nil {
					t.Fatal(err)
				}
			}
			if _, adopted := a.adopt(t.Context(), a.rules, seen, now); adopted != c.adopted {
				t.Errorf("adopted: %v, want %v", adopted, c.adopted)
			}
			if o.file.Resolves(device) == c.adopted || !o.file.InStep() {
				t.Errorf("the spec has the device: %v, in step %v", o.file.Resolves(device), o.file.InStep())
			}
			a.look(t.Context(), lookout.Glance, now)
			if !o.file.Resolves(device) || !o.byID[id].Healthy() {
				t.Error("the device is not there after the next look")
			}
			// An answer is not held against a look that begins after it.
			must(t, n.Unbind(address(t, id)))
			a.look(t.Context(), lookout.Glance, now)
			if o.file.Resolves(device) || o.byID[id].Healthy() {
				t.Error("the device is there after it has left")
			}
		})
	}
}
