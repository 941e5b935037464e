package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
)

// Where the plugins that this one replaces have their files.
const (
	sriovPlace = "/etc/pcidp/config.json"
	rdmaPlace  = "/k8s-rdma-shared-dev-plugin/config.json"
)

// adapter is a PF with an interface, and with VFs of one device ID on these drivers.
func adapter(bus string, vendor, device, vfDevice pci.ID, driver, name string, vfs ...string) sim.Function {
	f := sim.Function{
		Path:   fmt.Sprintf("pci0000:%s/0000:%s:01.0/0000:%s:00.0", bus, bus, next(bus)),
		Vendor: vendor, Device: device, Class: 0x020000, Driver: driver, Group: fmt.Sprint(10 + strings.Index("123456789a", bus[:1])),
		TotalVFs: 64, VFOffset: 16, VFDevice: vfDevice,
		NIC: &sim.NIC{Interfaces: []sim.Interface{{Name: name}}, VFInterface: name + "v%d"},
	}
	for _, d := range vfs {
		f.VFs = append(f.VFs, sim.VF{Driver: d})
	}
	return f
}

// next is the number behind a bus that ends in 0.
func next(bus string) string { return bus[:1] + "1" }

// hca is an InfiniBand adapter with an RDMA device.
func hca(bus string, device pci.ID, name string) sim.Function {
	f := adapter(bus, 0x15b3, device, 0, "mlx5_core", name)
	f.TotalVFs, f.VFOffset, f.Class = 0, 0, 0x020700
	f.NIC.Interfaces[0].Type = 32 // ARPHRD_INFINIBAND
	f.NIC.RDMA = []sim.RDMA{{Name: "mlx5_%d", InfiniBand: true}}
	return f
}

// public reads a configuration of the old plugins' documentation.
func public(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "internal", "nicconfig", "testdata", "public", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// mount puts a file where its ConfigMap is mounted.
func (n *nicNode) mount(place, text string) {
	n.t.Helper()
	n.must(os.MkdirAll(filepath.Dir(filepath.Join(n.Dir, place)), 0o755))
	n.replace(filepath.Join(n.Dir, place), text)
}

// vfs are the addresses of a PF's first VFs.
func vfs(bus string, numbers ...int) []string {
	var all []string
	for _, k := range numbers {
		all = append(all, fmt.Sprintf("0000:%s:%02x.%d", next(bus), 2+k/8, k%8))
	}
	return all
}

// shares are those of two devices.
func shares(total int, buses ...string) []string {
	var all []string
	for i := range total {
		all = append(all, fmt.Sprintf("0000:%s:00.0::%d", next(buses[i%len(buses)]), i/len(buses)))
	}
	slices.Sort(all)
	return all
}

// TestNICPublic: configurations of the public documentation of both plugins, unchanged, in the
// places and with the arguments of their manifests, on nodes with the hardware that they name.
func TestNICPublic(t *testing.T) {
	const intel, mellanox = 0x8086, 0x15b3
	infiniBand := []sim.Function{hca("40", 0x101b, "ib0"), hca("50", 0x101b, "ib1"), hca("60", 0x101b, "ib2"), hca("70", 0x1017, "ib3"), hca("80", 0x1017, "ib4"), hca("90", 0x101b, "ib5")}
	intels := []sim.Function{
		adapter("10", intel, 0x1572, 0x154c, "i40e", "enp0s0f0", "i40evf", "i40evf", "vfio-pci", "vfio-pci"),
		adapter("20", intel, 0x10fb, 0x10ed, "ixgbe", "enp2s2f1", "ixgbevf", "vfio-pci"),
		adapter("30", intel, 0x1572, 0x154c, "i40e", "enp5s0f0", "vfio-pci", "i40evf"),
		adapter("a0", mellanox, 0x1017, 0x1018, "mlx5_core", "enp7s0f0", "mlx5_core"),
	}
	kernel := slices.Concat(vfs("10", 0, 1), vfs("20", 0), vfs("30", 1))
	dpdk := slices.Concat(vfs("10", 2, 3), vfs("20", 1))
	operator := []sim.Function{
		adapter("10", intel, 0x1592, 0x1889, "ice", "ens785f0", slices.Repeat([]string{"iavf"}, 8)...),
		adapter("20", intel, 0x1592, 0x1889, "ice", "ens785f1", slices.Repeat([]string{"vfio-pci"}, 16)...),
	}
	ethernet := hca("40", 0x101d, "ens1f0")
	ethernet.Class, ethernet.NIC.Interfaces[0].Type, ethernet.NIC.RDMA[0].InfiniBand = 0x020000, 0, false
	for _, c := range []struct {
		name      string
		functions []sim.Function
		files     map[string]string // by place
		args      []string
		want      map[string][]string
		said      []string // in one line of the log
	}{
		{
			name: "SR-IOV plugin", functions: intels,
			files: map[string]string{sriovPlace: public(t, "sriov-configmap.json")},
			args:  []string{"--log-dir=sriovdp", "--log-level=10"},
			want:  map[string][]string{"intel.com/intel_sriov_netdevice": kernel, "intel.com/intel_sriov_dpdk": dpdk},
			// The driver is mlx5_core as lspci shows it, and that is what selectors mean.
			said: []string{"CFG016", "intel.com/mlnx_sriov_rdma"},
		},
		{
			name: "SR-IOV operator", functions: operator,
			files: map[string]string{"/etc/pcidp/worker-1": public(t, "sriov-operator-node.json"), sriovPlace: "not this one"},
			args:  []string{"--log-level=10", "--resource-prefix=openshift.io", "--config-file=/etc/pcidp/worker-1", "--use-cdi"},
			want:  map[string][]string{"openshift.io/sriovnics": slices.Concat(vfs("10", 0, 1, 2, 3, 4), vfs("20", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9))},
		},
		{
			name: "RDMA plugin", functions: infiniBand,
			files: map[string]string{rdmaPlace: public(t, "rdma-configmap.json")},
			want:  map[string][]string{"rdma/hca_shared_devices_a": shares(1000, "40", "50"), "rdma/hca_shared_devices_b": shares(500, "70", "80")},
			said:  []string{"no effect", "periodicUpdateInterval"},
		},
		{
			name: "Network Operator", functions: []sim.Function{ethernet, hca("50", 0x101b, "ib0")},
			files: map[string]string{rdmaPlace: public(t, "rdma-network-operator.json")},
			args:  []string{"--use-cdi"},
			want:  map[string][]string{"rdma/rdma_shared_device_a": shares(63, "40")},
			said:  []string{"a flag of an earlier plugin has no effect", "use-cdi"},
		},
		{
			name: "both plugins", functions: slices.Concat(intels, infiniBand),
			files: map[string]string{sriovPlace: public(t, "sriov-configmap.json"), rdmaPlace: public(t, "rdma-configmap.json")},
			want: map[string][]string{
				"intel.com/intel_sriov_netdevice": kernel, "intel.com/intel_sriov_dpdk": dpdk,
				"rdma/hca_shared_devices_a": shares(1000, "40", "50"), "rdma/hca_shared_devices_b": shares(500, "70", "80"),
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := newNICNode(t, sim.Platform{Name: c.name, Functions: c.functions, Shared: []string{"/dev/infiniband/rdma_cm"}})
			for place, text := range c.files {
				n.mount(place, text)
			}
			n.Args = c.args
			n.run()
			for resource, ids := range c.want {
				n.await(resource, ids...)
			}
			n.awaitLog(`"msg":"ready"`)
			if len(c.said) > 0 {
				n.awaitLog(c.said...)
			}
			if got, want := n.Kubelet.Resources(), slices.Sorted(maps.Keys(c.want)); !slices.Equal(got, want) {
				t.Errorf("kubelet has %v, want %v", got, want)
			}
			for resource := range c.want {
				n.served(resource)
			}
		})
	}
}

// served checks that a pod gets what the old plugin gave it: of SR-IOV the variable, of RDMA
// every HCA's nodes.
func (n *nicNode) served(resource string) {
	n.t.Helper()
	pod := n.admit(resource, 2)
	c := n.container(pod)
	if prefix, name, _ := strings.Cut(resource, "/"); prefix != "rdma" {
		variable := "PCIDEVICE_" + strings.ReplaceAll(strings.ToUpper(prefix), ".", "_") + "_" + strings.ToUpper(name)
		if ids := strings.Split(c.Env[variable], ","); !slices.Equal(slices.Sorted(slices.Values(ids)), n.held(pod, resource)) {
			n.t.Errorf("%s is %v", variable, ids)
		}
		return
	}
	devices := map[string]bool{}
	for _, id := range n.Kubelet.Allocatable(resource) {
		device, _, _ := strings.Cut(id, "::")
		devices[device] = true
	}
	if want := 3*len(devices) + 1; len(c.Nodes) != want || len(c.Env) > 0 { // uverbs, umad, issm of each, and rdma_cm
		n.t.Errorf("of %s a pod gets %v", resource, c)
	}
}

// TestNICSubfunctions: the public configuration for BlueField's subfunctions.
func TestNICSubfunctions(t *testing.T) {
	pf := adapter("10", 0x15b3, 0xa2d6, 0, "mlx5_core", "p0")
	n := newNICNode(t, sim.Platform{Name: "BlueField-2", Functions: []sim.Function{pf}})
	for k := range 7 {
		_, err := n.AddSF(pf.Address(), sim.SF{ID: 2 + k, Number: uint32(k), NIC: &sim.NIC{Interfaces: []sim.Interface{{Name: fmt.Sprint("en3f0pf0sf", k)}}}})
		n.must(err)
	}
	n.mount(sriovPlace, public(t, "sriov-subfunctions.json"))
	n.run()
	n.await("nvidia.com/bf2_sf", "mlx5_core.sf.3", "mlx5_core.sf.4", "mlx5_core.sf.5", "mlx5_core.sf.6", "mlx5_core.sf.7")
	n.served("nvidia.com/bf2_sf")
}
