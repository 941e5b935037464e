package nic_test

import (
	"encoding/json"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nic"
)

// TestT1: two VFs on VFIO. As with the old plugin.
func TestT1(t *testing.T) {
	r := pools(t, `{"resourceName":"vfio","selectors":{"drivers":["vfio-pci"]}}`)
	d := r.Declare(treeB(), declare.Past{})
	expect(t, d, `intel.com/vfio 0000:65:00.3
		intel.com/vfio 0000:65:00.4`)
	a, b := device(t, d, "intel.com/vfio", "0000:65:00.3"), device(t, d, "intel.com/vfio", "0000:65:00.4")
	if a.Function.NUMA != 1 || a.NoTopology {
		t.Errorf("NUMA node %d", a.Function.NUMA)
	}
	if got := nodes(a, b); got != "/dev/vfio/41 rw\n/dev/vfio/42 rw\n/dev/vfio/vfio rw\n" {
		t.Errorf("nodes:\n%s", got)
	}
	env := r.Environment("intel.com/vfio", []*declare.Device{b, a})
	const info = `{"0000:65:00.3":{"generic":{"deviceID":"0000:65:00.3"},"vfio":{"dev-mount":"/dev/vfio/41","mount":"/dev/vfio/vfio"}},` +
		`"0000:65:00.4":{"generic":{"deviceID":"0000:65:00.4"},"vfio":{"dev-mount":"/dev/vfio/42","mount":"/dev/vfio/vfio"}}}`
	if len(env) != 2 || env["PCIDEVICE_INTEL_COM_VFIO"] != "0000:65:00.4,0000:65:00.3" || env["PCIDEVICE_INTEL_COM_VFIO_INFO"] != info {
		t.Errorf("environment, in the order of the request: %v", env)
	}
	// Of the file the old plugin fills in no more than the address.
	devinfo(t, r, "intel.com/vfio", a,
		`{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.3","pf-pci-address":"0000:65:00.0"}}`)
}

// TestT2: PF names without case, with lists. The old plugin lost the second entry (D4), and
// left out a VF without a driver, of which nobody then knew.
func TestT2(t *testing.T) {
	d := pools(t, `{"resourceName":"a","selectors":{"pfNames":["ENS1F0NP0#0-1,3","ens1f0np0#5"]}}`).Declare(treeB(), declare.Past{})
	expect(t, d, `intel.com/a 0000:65:00.2
		intel.com/a 0000:65:00.3
		intel.com/a 0000:65:00.5 HST036
		intel.com/a 0000:65:00.7`)
}

// TestT3: order and exclusivity. The old plugin says nothing of pool b, and hands out what
// needs vhost-net without it.
func TestT3(t *testing.T) {
	r := pools(t, `{"resourceName":"a","selectors":[{"vendors":["15b3"],"devices":["101e"],"needVhostNet":true},{"vendors":["15b3"]}]},
		{"resourceName":"b","selectors":{"drivers":["vfio-pci"]}}`)
	d := r.Declare(treeB(), declare.Past{})
	expect(t, d, `intel.com/a 0000:65:00.1
		intel.com/a 0000:65:00.2 HST037 HST037
		intel.com/a 0000:65:00.3 HST037 HST037
		intel.com/a 0000:65:00.4 HST037 HST037
		intel.com/a 0000:65:00.5 HST036
		intel.com/a 0000:65:00.6 HST037 HST037
		intel.com/a 0000:65:00.7 HST037 HST037`)
	if got := found(d, finding.Shadowed(), finding.Overlap(), finding.NothingSelected(), finding.ReplacedByVFs()); got != lines(`
		CFG015 intel.com/b
		HST039 intel.com/a 0000:65:00.0`) {
		t.Errorf("findings:\n%s", got)
	}
	d = r.Declare(snapshot(base()), declare.Past{}) // with vhost-net
	if got := nodes(device(t, d, "intel.com/a", "0000:65:00.2")); got != "/dev/net/tun rw\n/dev/vhost-net rw\n" {
		t.Errorf("nodes:\n%s", got)
	}
	if got := nodes(device(t, d, "intel.com/a", "0000:65:00.1")); got != "\n" { // by object 2
		t.Errorf("nodes:\n%s", got)
	}
}

// TestT4: an RDMA VF with additional information. As with the old plugin.
func TestT4(t *testing.T) {
	r := pools(t, `{"resourceName":"rdma","resourcePrefix":"nvidia.com","selectors":{"vendors":["15b3"],"isRdma":true},
		"additionalInfo":{"*":{"token":"a","k":"g"},"0000:65:00.7":{"token":"b"}}}`)
	d := r.Declare(treeB(), declare.Past{})
	expect(t, d, `nvidia.com/rdma 0000:65:00.7`)
	v := device(t, d, "nvidia.com/rdma", "0000:65:00.7")
	if got := nodes(v); got != "/dev/infiniband/issm7 rw\n/dev/infiniband/rdma_cm rw\n/dev/infiniband/umad7 rw\n/dev/infiniband/uverbs7 rw\n" {
		t.Errorf("nodes:\n%s", got)
	}
	const info = `{"0000:65:00.7":{"extra":{"k":"g","token":"b"},"generic":{"deviceID":"0000:65:00.7"},` +
		`"rdma":{"issm":"/dev/infiniband/issm7","rdma_cm":"/dev/infiniband/rdma_cm","rdma_dev":"mlx5_7",` +
		`"umad":"/dev/infiniband/umad7","uverbs":"/dev/infiniband/uverbs7"}}}`
	env := r.Environment("nvidia.com/rdma", []*declare.Device{v})
	if env["PCIDEVICE_NVIDIA_COM_RDMA"] != "0000:65:00.7" || env["PCIDEVICE_NVIDIA_COM_RDMA_INFO"] != info {
		t.Errorf("environment: %v", env)
	}
	devinfo(t, r, "nvidia.com/rdma", v,
		`{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.7","rdma-device":"mlx5_7","pf-pci-address":"0000:65:00.0"}}`)
}

// TestT5: topology, accelerator, UIO. The old plugin tells nothing of the UIO node at the
// first Allocate (D6), and takes both accelerators (D3).
func TestT5(t *testing.T) {
	r := pools(t, `{"resourceName":"uio","selectors":{"drivers":["igb_uio"]},"excludeTopology":true},
		{"resourceName":"pf","selectors":{"pciAddresses":["0000:65:00.1"]}},
		{"resourceName":"acc","deviceType":"accelerator","selectors":{"acpiIndexes":["101"]}}`)
	d := r.Declare(treeB(), declare.Past{})
	expect(t, d, `intel.com/uio 0000:65:00.6
		intel.com/pf 0000:65:00.1
		intel.com/acc 0000:f7:00.0`)
	uio, pf, acc := device(t, d, "intel.com/uio", "0000:65:00.6"), device(t, d, "intel.com/pf", "0000:65:00.1"), device(t, d, "intel.com/acc", "0000:f7:00.0")
	if !uio.NoTopology || pf.NoTopology || pf.Function.NUMA != host.NoNode || acc.NoTopology || acc.Function.NUMA != 0 {
		t.Error("topology")
	}
	if got := nodes(uio); got != "/dev/uio7 rw\n" {
		t.Errorf("nodes:\n%s", got)
	}
	if got := about(t, uio); got != `{"generic":{"deviceID":"0000:65:00.6"},"uio":{"mount":"/dev/uio7"}}` {
		t.Errorf("about: %s", got)
	}
	if got := nodes(acc); got != "/dev/vfio/50 rw\n/dev/vfio/vfio rw\n" {
		t.Errorf("nodes:\n%s", got)
	}
	if _, ok := r.DeviceInfo("intel.com/acc", acc); ok {
		t.Error("an accelerator has a device-info file")
	}
}

// hcas are the three of T6.
func hcas() []host.Function {
	return []host.Function{
		function("0000:17:00.0", 0x15b3, 0x101b, 0x020700, "mlx5_core", infiniband("ib0"), shares(0, "umad")),
		function("0000:65:00.0", 0x15b3, 0x101b, 0x020700, "mlx5_core", infiniband("a.8001", "ib1"), shares(1, "umad")),
		function("0000:66:00.0", 0x15b3, 0x101d, 0x020000, "mlx5_core", numa(0), ether("eth2"), shares(2)),
	}
}

// TestT6: shared RDMA. The IPoIB child hides ib1 from the old plugin (D9), which repeats
// rdma_cm, and has no device of roce where this one has two that are not healthy: kubelet
// counts them as capacity, and not as allocatable. IDs name the device.
func TestT6(t *testing.T) {
	const ib = `{"resourceName":"ib","rdmaHcaMax":3,"selectors":{"ifNames":["ib0","ib1"]}}`
	r := shared(t, ib+`,{"resourceName":"roce","rdmaHcaMax":2,"selectors":{"linkTypes":["ether"]}}`)
	d := r.Declare(snapshot(hcas()), declare.Past{})
	expect(t, d, `rdma/ib 0000:17:00.0::0
		rdma/ib 0000:17:00.0::1
		rdma/ib 0000:65:00.0::0
		rdma/roce 0000:66:00.0::0 HST008
		rdma/roce 0000:66:00.0::1 HST008`)
	const want = "/dev/infiniband/rdma_cm rwm\n/dev/infiniband/umad0 rwm\n/dev/infiniband/umad1 rwm\n/dev/infiniband/uverbs0 rwm\n/dev/infiniband/uverbs1 rwm\n"
	for _, dev := range d.Resources[0].Devices {
		if got := nodes(&dev); got != want {
			t.Errorf("nodes of %s:\n%s", dev.ID, got)
		}
		if len(dev.With)+len(dev.Nodes) != 5 {
			t.Errorf("nodes of %s are doubled: %v %v", dev.ID, dev.Nodes, dev.With)
		}
		if dev.About != nil || r.Environment("rdma/ib", []*declare.Device{&dev}) != nil {
			t.Error("a share has an environment")
		}
		if _, ok := r.DeviceInfo("rdma/ib", &dev); ok {
			t.Error("a share has a device-info file")
		}
	}
	if why := d.Resources[1].Devices[0].Faults[0].Reason(); why != "a part of the RDMA device is missing: mlx5_2 = no umad: load ib_umad" {
		t.Errorf("reason: %s", why)
	}
	r = shared(t, `{"resourceName":"roce","rdmaHcaMax":2,"selectors":{"linkTypes":["ether"]},"rdmaNodes":{"umad":"optional"}}`)
	d = r.Declare(snapshot(hcas()), declare.Past{})
	expect(t, d, `rdma/roce 0000:66:00.0::0
		rdma/roce 0000:66:00.0::1`)
	if got := nodes(&d.Resources[0].Devices[0]); got != "/dev/infiniband/rdma_cm rwm\n/dev/infiniband/uverbs2 rwm\n" {
		t.Errorf("nodes:\n%s", got)
	}
}

// devinfo compares a device's file.
func devinfo(t *testing.T, r *nic.Rules, resource string, d *declare.Device, want string) {
	t.Helper()
	i, ok := r.DeviceInfo(resource, d)
	got, err := json.Marshal(i)
	if err != nil || !ok || string(got) != want {
		t.Errorf("device-info of %s: %s, %v, %v", d.ID, got, ok, err)
	}
}
