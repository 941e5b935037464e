package exporter

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
)

func address(t testing.TB, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

func (n *node) cdev(id string) (int, bool) { return n.Cdev(address(n.t, id)) }

func platform(t testing.TB, name string) sim.Platform {
	t.Helper()
	p, err := sim.PlatformByName(name)
	must(t, err)
	return p
}

const gpu = "nvidia.com/gpu"

// TestDevicePlugin: GPUs of a device plugin in several containers, one of them gone to its driver,
// with a counter resource of another plugin, and a pod that kubelet's record still has.
func TestDevicePlugin(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"), nil)
	k := n.kubelet
	all := n.GPUs()
	unbound := all[7]
	must(t, n.Unbind(address(t, unbound)))
	k.two[all[0]] = true
	switches := n.NVSwitches()
	k.set(func() {
		k.offers = map[string][]string{gpu: all[:7], "nvidia.com/nvswitch": switches, "rdma/shared": {"0", "1", "2"}, "nvidia.com/mig": {"GPU-1::0"}}
		k.pods = []*api.PodResources{
			pod("ml", "train-0", container("idle"), container("main", k.devices(gpu, all[0], all[4])), container("sidecar", k.devices(gpu, all[1]), k.devices("rdma/shared", "1"))),
			pod("ml", "train-1", container("main", k.devices(gpu, all[2]))),
			pod("web", "shares", container("main", k.devices("rdma/shared", "0"))),
		}
	})
	n.cdiSpec("kata.", gpu, all[:7]...)
	n.cdiSpec("kata.", "nvidia.com/nvswitch", switches...)
	n.checkpoint(map[string][]string{gpu: all[:7], "nvidia.com/nvswitch": switches, "rdma/shared": {"0", "1", "2"}},
		given{PodUID: "u-0", ContainerName: "main", ResourceName: gpu, DeviceIDs: map[string][]string{"0": {all[0]}, "1": {all[0], all[4]}}},
		given{PodUID: "u-0", ContainerName: "sidecar", ResourceName: gpu, DeviceIDs: map[string][]string{"0": {all[1]}}},
		given{PodUID: "u-1", ContainerName: "main", ResourceName: gpu, DeviceIDs: map[string][]string{"0": {all[2]}}},
		given{PodUID: "u-1", ContainerName: "init", ResourceName: gpu, DeviceIDs: map[string][]string{"0": {all[5]}}},
		given{PodUID: "u-old", ContainerName: "main", ResourceName: gpu, DeviceIDs: map[string][]string{"0": {all[6]}}},
		given{PodUID: "u-old", ContainerName: "main", ResourceName: "rdma/shared", DeviceIDs: map[string][]string{"-1": {"2"}}},
	)
	n.pass(0)
	n.want("allocations_not_released", `{source="cdi_specs"} 0`, `{source="checkpoint"} 0`, `{source="claim_records"} 0`) // it may be about to be tidied up
	n.pass(2 * time.Minute)
	golden.Assert(t, n.text(), "hgx-h100.prom")
}

// TestUnhealthy: a GPU whose companion the host has, and another plugin with the same resource.
func TestUnhealthy(t *testing.T) {
	n := newNode(t, platform(t, "workstation"), nil)
	audio := address(t, "0000:01:00.1")
	must(t, n.Unbind(audio), n.Bind(audio, "snd_hda_intel"))
	n.kubelet.set(func() { n.kubelet.offers = map[string][]string{gpu: {"GPU-0", "GPU-1"}} })
	for range 2 {
		n.pass(time.Minute)
		n.want("resource_contested_devices") // it may be about to change
	}
	n.pass(time.Minute)
	golden.Assert(t, n.text(), "workstation.prom")
}

// record writes records of the DRA driver's claims.
func (n *node) record(records ...claim.Record) {
	n.t.Helper()
	store, err := claim.Open(filepath.Join(n.e.options.Kubelet, "plugins/vfio.katacontainers.io/claims"))
	must(n.t, err)
	unlock, err := store.Lock(n.t.Context())
	must(n.t, err)
	for _, r := range records {
		must(n.t, store.Put(r))
	}
	must(n.t, unlock())
}

// dynamic is a claim as kubelet tells it: each device with the CDI names of all before it as well.
func dynamic(namespace, name, uid string, devices ...string) *api.DynamicResource {
	d := &api.DynamicResource{ClaimNamespace: namespace, ClaimName: name}
	var names []*api.CDIDevice
	for _, device := range devices {
		names = append(names, &api.CDIDevice{Name: draname.ClaimKind + "=" + uid + "-" + device})
		d.ClaimResources = append(d.ClaimResources, &api.ClaimResource{
			DriverName: "vfio.katacontainers.io", PoolName: "node-1", DeviceName: device, CdiDevices: names,
		})
	}
	return d
}

// deviceName is the name of a device of the DRA driver.
func (n *node) deviceName(kind, of string) string { return draname.Device(kind, address(n.t, of)) }

// prepared is the record of a claim.
func (n *node) prepared(uid, name string, kind string, addresses ...string) claim.Record {
	r := claim.Record{UID: uid, Namespace: "ml", Name: name, Boot: "b", State: claim.Prepared, Since: n.time, Changed: n.time}
	for i, a := range addresses {
		r.Devices = append(r.Devices, claim.Device{
			Pool: "node-1", Name: n.deviceName(kind, a), Address: a, Group: []string{a}, Requests: []string{fmt.Sprintf("r%d", i)},
			CDI: []string{draname.ClaimKind + "=" + uid + "-" + n.deviceName(kind, a)},
		})
	}
	return r
}

// TestClaims: devices of claims, one of which two containers share, one without a record, one that
// no pod has any more, and one of another driver.
func TestClaims(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h200"), nil)
	all := n.GPUs()
	n.record(n.prepared("c-0", "pair", "gpu", all[0], all[1]), n.prepared("c-old", "gone", "gpu", all[5]))
	for uid, addresses := range map[string][]string{"c-0": all[:2], "c-lost": all[6:7]} {
		n.claimSpec(uid, "gpu", addresses...)
	}
	claims := filepath.Join(n.e.options.Kubelet, "plugins/vfio.katacontainers.io/claims")
	must(t, os.WriteFile(filepath.Join(claims, "c-bad.json"), []byte("no"), 0o600))
	pair := dynamic("ml", "pair", "c-0", n.deviceName("gpu", all[0]), n.deviceName("gpu", all[1]))
	other := &api.DynamicResource{ClaimNamespace: "ml", ClaimName: "net", ClaimResources: []*api.ClaimResource{{DriverName: "dra.net", PoolName: "p", DeviceName: "eth0"}}}
	n.kubelet.set(func() {
		n.kubelet.pods = []*api.PodResources{
			pod("ml", "shared",
				&api.ContainerResources{Name: "a", DynamicResources: []*api.DynamicResource{pair, other}},
				&api.ContainerResources{Name: "b", DynamicResources: []*api.DynamicResource{pair}}),
			pod("ml", "unrecorded",
				&api.ContainerResources{Name: "a", DynamicResources: []*api.DynamicResource{dynamic("ml", "lone", "c-9", n.deviceName("gpu", all[3]))}}),
		}
	})
	n.pass(0)
	n.pass(2 * time.Minute)
	golden.Assert(t, n.text(), "hgx-h200-dra.prom")
}

const pools = `{
  "resourceList": [{"resourceName": "dpdk", "selectors": {"drivers": ["vfio-pci"]}}],
  "configList": [{"resourceName": "hca", "rdmaHcaMax": 4, "selectors": {"vendors": ["15b3"]}}]
}`

// TestNICs: VFs handed out whole, and shares, which are told by the function that they are of.
func TestNICs(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.json")
	must(t, os.WriteFile(config, []byte(pools), 0o600))
	n := newNode(t, platform(t, "sriov-cpu"), func(o *Options) { o.NICs = []string{config} })
	k := n.kubelet
	n.pass(0)
	var shares, whole []string
	for i := range n.e.collector.view.Load().state.Units {
		u := &n.e.collector.view.Load().state.Units[i]
		if strings.Contains(u.ID, "::") {
			shares = append(shares, u.ID)
		} else {
			whole = append(whole, u.ID)
		}
	}
	if len(shares) < 2 || len(whole) < 2 {
		t.Fatalf("shares %v, whole %v", shares, whole)
	}
	k.set(func() {
		k.offers = map[string][]string{"intel.com/dpdk": whole, "rdma/hca": shares}
		k.pods = []*api.PodResources{
			pod("cnf", "upf", container("dp", k.devices("intel.com/dpdk", whole[0])), container("cp", k.devices("rdma/hca", shares[0], shares[1]))),
			pod("cnf", "smf", container("main", k.devices("rdma/hca", shares[1]))),
		}
	})
	n.pass(10 * time.Second)
	golden.Assert(t, n.text(), "sriov-cpu.prom")
}

// claimSpec writes the spec of a claim, as the DRA driver does.
func (n *node) claimSpec(uid, kind string, addresses ...string) {
	n.t.Helper()
	var all []cdi.Device
	for _, a := range addresses {
		number, ok := n.cdev(a)
		if !ok {
			n.t.Fatalf("%s is not on VFIO", a)
		}
		all = append(all, cdi.Device{
			Name: uid + "-" + n.deviceName(kind, a), Nodes: []cdi.Node{{Path: fmt.Sprintf("/dev/vfio/devices/vfio%d", number), Permissions: "rw"}},
		})
	}
	_, err := cdi.NewFile(n.roots.CDI, draname.SpecOwner(uid), draname.ClaimKind).Sync(all)
	must(n.t, err)
}
