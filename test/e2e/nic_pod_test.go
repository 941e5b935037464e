package e2e

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/kubelet"
)

// everything has a pool for each kind of device that adapters has.
const everything = `{"resourceList": [
	{"resourceName": "vfio", "selectors": {"drivers": ["vfio-pci"], "pfNames": ["ens1f0np0#1"]}},
	{"resourceName": "cdev", "vfioNodes": "cdev", "excludeTopology": true, "selectors": {"drivers": ["vfio-pci"]}},
	{"resourceName": "rdma", "resourcePrefix": "nvidia.com", "selectors": {"isRdma": true, "pfNames": ["ens1f0np0"]}, "additionalInfo": {"*": {"token": "a"}}},
	{"resourceName": "vdpa", "selectors": {"vdpaType": "vhost"}},
	{"resourceName": "net", "selectors": {"pfNames": ["ENS1F0NP0#0"]}},
	{"resourceName": "uio", "selectors": {"drivers": ["igb_uio"], "needVhostNet": true}},
	{"resourceName": "acc", "deviceType": "accelerator", "selectors": {"devices": ["0D5C"]}},
	{"resourceName": "sf", "deviceType": "auxNetDevice", "selectors": {"auxTypes": ["sf"]}}],
	"configList": [{"resourceName": "hca", "rdmaHcaMax": 3, "selectors": {"drivers": ["mlx5_core"]}}]}`

// adapters is a node with a device of each kind, and with everything configured.
func adapters(t *testing.T) *nicNode {
	t.Helper()
	n := newNICNode(t, sim.Adapters())
	vf := n.address("0000:65:00.5")
	_, err := n.AddSF(n.address("0000:65:00.0"), sim.SF{ID: 4, Number: 88, NIC: &sim.NIC{Interfaces: []sim.Interface{{Name: "ens1f0s88"}}}})
	n.must(errors.Join(err, n.AddShared("/dev/vhost-net"), n.AddShared("/dev/net/tun"),
		n.Bind(vf, "mlx5_core"), n.AddVDPA(vf, "vdpa0", "vhost_vdpa")))
	n.configure(everything)
	return n
}

// granted is what a pod with one device of a resource gets.
type granted struct {
	resource, id, nodes, info string
	file                      string // of device-info, empty for none
	cdi                       string // nodes behind the CDI name, empty for no name
}

// TestNICPods: each kind of device, from the configuration to what kubelet hands to the
// container runtime: variables, nodes, CDI names and what is behind them, and the
// device-info file.
func TestNICPods(t *testing.T) {
	n := adapters(t)
	n.run()
	for _, g := range []granted{
		{
			resource: "intel.com/vfio", id: "0000:65:00.3",
			nodes: "/dev/vfio/41 rw, /dev/vfio/vfio rw",
			info:  `{"generic":{"deviceID":"0000:65:00.3"},"vfio":{"dev-mount":"/dev/vfio/41","mount":"/dev/vfio/vfio"}}`,
			file:  `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.3","pf-pci-address":"0000:65:00.0"}}`,
			cdi:   "/dev/vfio/41",
		},
		{
			resource: "intel.com/cdev", id: "0000:65:00.4",
			nodes: "/dev/vfio/devices/vfio3 rw",
			info:  `{"generic":{"deviceID":"0000:65:00.4"},"vfio":{"cdev-mount":"/dev/vfio/devices/vfio3"}}`,
			file:  `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.4","pf-pci-address":"0000:65:00.0"}}`,
			cdi:   "/dev/vfio/devices/vfio3",
		},
		{
			resource: "nvidia.com/rdma", id: "0000:65:00.7",
			nodes: "/dev/infiniband/issm7 rw, /dev/infiniband/rdma_cm rw, /dev/infiniband/umad7 rw, /dev/infiniband/uverbs7 rw",
			info: `{"extra":{"token":"a"},"generic":{"deviceID":"0000:65:00.7"},"rdma":{"issm":"/dev/infiniband/issm7",` +
				`"rdma_cm":"/dev/infiniband/rdma_cm","rdma_dev":"mlx5_7","umad":"/dev/infiniband/umad7","uverbs":"/dev/infiniband/uverbs7"}}`,
			file: `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.7","rdma-device":"mlx5_7","pf-pci-address":"0000:65:00.0"}}`,
			cdi:  "/dev/infiniband/issm7, /dev/infiniband/umad7, /dev/infiniband/uverbs7",
		},
		{
			resource: "intel.com/vdpa", id: "0000:65:00.5",
			nodes: "/dev/vhost-vdpa-0 rw",
			info:  `{"generic":{"deviceID":"0000:65:00.5"},"vdpa":{"mount":"/dev/vhost-vdpa-0"}}`,
			file: `{"type":"vdpa","version":"1.1.0","vdpa":{"parent-device":"vdpa0","driver":"vhost","path":"/dev/vhost-vdpa-0",` +
				`"pci-address":"0000:65:00.5","pf-pci-address":"0000:65:00.0"}}`,
			cdi: "/dev/vhost-vdpa-0",
		},
		{
			resource: "intel.com/net", id: "0000:65:00.2",
			info: `{"generic":{"deviceID":"0000:65:00.2"}}`,
			file: `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.2","pf-pci-address":"0000:65:00.0"}}`,
		},
		{
			resource: "intel.com/uio", id: "0000:65:00.6",
			nodes: "/dev/net/tun rw, /dev/uio7 rw, /dev/vhost-net rw",
			info:  `{"generic":{"deviceID":"0000:65:00.6"},"uio":{"mount":"/dev/uio7"},"vhost":{"net-mount":"/dev/vhost-net","tun-mount":"/dev/net/tun"}}`,
			file:  `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.6","vhost-net":"/dev/vhost-net","pf-pci-address":"0000:65:00.0"}}`,
			cdi:   "/dev/uio7",
		},
		{
			resource: "intel.com/acc", id: "0000:f7:00.0",
			nodes: "/dev/vfio/50 rw, /dev/vfio/vfio rw",
			info:  `{"generic":{"deviceID":"0000:f7:00.0"},"vfio":{"dev-mount":"/dev/vfio/50","mount":"/dev/vfio/vfio"}}`,
			cdi:   "/dev/vfio/50",
		},
		{resource: "intel.com/sf", id: "mlx5_core.sf.4", info: `{"generic":{"deviceID":"mlx5_core.sf.4"}}`},
	} {
		t.Run(g.resource, func(t *testing.T) { n.within(t).gets(g) })
	}
}

// gets admits a pod and looks at all that it gets.
func (n *nicNode) gets(g granted) {
	n.t.Helper()
	n.await(g.resource, g.id)
	if _, err := os.Stat(n.infoFile(g.resource, g.id)); !errors.Is(err, fs.ErrNotExist) {
		n.t.Errorf("the device-info file is there before the device is a pod's: %v", err)
	}
	pod := n.admit(g.resource, 1)
	c := n.container(pod)
	variable := "PCIDEVICE_" + strings.NewReplacer(".", "_", "/", "_").Replace(strings.ToUpper(g.resource))
	want := map[string]string{variable: g.id, variable + "_INFO": `{"` + g.id + `":` + g.info + `}`}
	if !maps.Equal(c.Env, want) || len(c.Mounts)+len(c.Annotations) > 0 {
		n.t.Errorf("got %v\nwant %v", c, want)
	}
	if got := words(c.Nodes); got != g.nodes {
		n.t.Errorf("nodes %s, want %s", got, g.nodes)
	}
	name := g.resource + "=" + g.id
	if got := strings.Join(c.CDI, ""); got != "" && got != name || (got == "") != (g.cdi == "") {
		n.t.Errorf("CDI name %q", got)
	}
	nodes, err := n.Resolve(name)
	slices.Sort(nodes)
	if got := strings.Join(nodes, ", "); got != g.cdi || (err == nil) != (g.cdi != "") {
		n.t.Errorf("the CDI name stands for %q, want %q: %v", got, g.cdi, err)
	}
	file, err := os.ReadFile(n.infoFile(g.resource, g.id))
	if string(file) != g.file || errors.Is(err, fs.ErrNotExist) != (g.file == "") {
		n.t.Errorf("device-info %s, want %s: %v", file, g.file, err)
	}
}

func words(nodes []kubelet.DeviceNode) string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.String())
	}
	return strings.Join(all, ", ")
}

// TestNICShares: a container with shares has the nodes of the HCAs of the pool, each once and
// as often as the budget says, no variables, and a CDI name for each share.
func TestNICShares(t *testing.T) {
	n := adapters(t)
	n.run()
	const hca = "rdma/hca"
	n.await(hca, "0000:65:00.7::0", "0000:65:00.7::1", "0000:65:00.7::2")
	two := n.admit(hca, 2)
	one := n.admit(hca, 1)
	n.refused(hca, 1, "UnexpectedAdmissionError")
	const nodes = "/dev/infiniband/issm7 rwm, /dev/infiniband/rdma_cm rwm, /dev/infiniband/umad7 rwm, /dev/infiniband/uverbs7 rwm"
	a, b := n.container(two), n.container(one)
	for _, c := range []kubelet.Container{a, b} {
		if got := words(c.Nodes); got != nodes || len(c.Env)+len(c.Mounts)+len(c.Annotations) > 0 {
			t.Errorf("got %v", c)
		}
		for _, name := range c.CDI {
			behind, err := n.Resolve(name)
			n.must(err)
			if !slices.Contains(behind, "/dev/infiniband/uverbs7") || slices.ContainsFunc(behind, func(node string) bool { return !strings.Contains(nodes, node+" ") }) {
				t.Errorf("%s stands for %v", name, behind)
			}
		}
	}
	names := slices.Concat(a.CDI, b.CDI)
	slices.Sort(names)
	if want := []string{hca + "=0000:65:00.7::0", hca + "=0000:65:00.7::1", hca + "=0000:65:00.7::2"}; !slices.Equal(names, want) {
		t.Errorf("CDI names %v, want %v", names, want)
	}
	n.Kubelet.Remove(two)
	n.admit(hca, 2)
}

// TestNICSeveral: a container with several devices of several resources, as network
// attachments give it. The variable has the devices that kubelet's record has.
func TestNICSeveral(t *testing.T) {
	n := newNICNode(t, sriovCPU(t))
	n.configure(`{"resourceList": [{"resourceName": "dpdk", "selectors": {"drivers": ["vfio-pci"], "vendors": ["8086"]}},
		{"resourceName": "kernel-net", "resourcePrefix": "openshift.io", "selectors": {"drivers": ["iavf"]}}]}`)
	n.run()
	n.await("intel.com/dpdk", "0000:31:01.0", "0000:31:01.2", "0000:31:11.0", "0000:31:11.2")
	n.await("openshift.io/kernel-net", "0000:31:01.1", "0000:31:01.3", "0000:31:11.1", "0000:31:11.3")
	pod := kubelet.Pod("pod", "intel.com/dpdk", 3)
	more := kubelet.Pod("more", "openshift.io/kernel-net", 2).Spec.Containers[0].Resources
	maps.Copy(pod.Spec.Containers[0].Resources.Limits, more.Limits)
	n.must(n.Kubelet.Admit(n.ctx, pod))
	c := n.container(pod)
	for resource, variable := range map[string]string{"intel.com/dpdk": "PCIDEVICE_INTEL_COM_DPDK", "openshift.io/kernel-net": "PCIDEVICE_OPENSHIFT_IO_KERNEL-NET"} {
		ids := strings.Split(c.Env[variable], ",")
		slices.Sort(ids)
		if held := n.held(pod, resource); !slices.Equal(ids, held) {
			t.Errorf("%s has %v, the pod %v", variable, ids, held)
		}
		var info map[string]any
		if err := json.Unmarshal([]byte(c.Env[variable+"_INFO"]), &info); err != nil || !slices.Equal(slices.Sorted(maps.Keys(info)), ids) {
			t.Errorf("%s_INFO has %v: %v", variable, info, err)
		}
		for _, id := range ids {
			if _, err := os.Stat(n.infoFile(resource, id)); err != nil {
				t.Error(err)
			}
		}
	}
	if len(c.Env) != 4 || len(c.CDI) != 3 || len(c.Nodes) != 4 { // three groups and /dev/vfio/vfio
		t.Errorf("got %v", c)
	}
}

func sriovCPU(t *testing.T) sim.Platform {
	t.Helper()
	p, err := sim.PlatformByName("sriov-cpu")
	if err != nil {
		t.Fatal(err)
	}
	return p
}
