package sim

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// netRecording is what a real kernel listed of interfaces.
//
//go:embed testdata/kernel-6.12-net.txt
var netRecording string

// TestKernelNet makes the interfaces of the recording and compares every line.
func TestKernelNet(t *testing.T) {
	pf := Function{
		Path: "pci0000:00/0000:00:04.0/0000:02:00.0", Vendor: intel, Device: 0x10c9, Class: classEthernet, NUMA: -1, Group: "10",
		TotalVFs: 7, VFOffset: 128, VFStride: 2, VFDevice: 0x10ca,
		NIC: &NIC{Interfaces: []Interface{{Name: "eth0"}}, VFInterface: "vf%d"},
	}
	n := newNode(t, Platform{Name: "recording", Functions: []Function{pf}})
	must(t, n.AddLink("dummy0", "dummy"), n.Bind(pf.Address(), "igb"), n.AddLink("sit0", "sit"), n.SetVFs(pf.Address(), 4, "igbvf"))
	for k := range 4 { // as the kernel names them, before udev does
		must(t, n.RenameInterface(fmt.Sprintf("vf%d", k), fmt.Sprintf("eth%d", k+1)))
	}
	lines := 0
	for line := range strings.Lines(netRecording) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		head, rest, _ := strings.Cut(line, " /")
		name, _, _ := strings.Cut(rest, " ")
		value := strings.TrimPrefix(rest, name)
		switch filepath.Base(name) {
		case "address", "operstate": // another machine's affair
			value = ""
		}
		compare(t, n, head, strings.TrimSuffix(name, "/"), value)
		lines++
	}
	if lines < 20 {
		t.Fatalf("%d lines", lines)
	}
	links, err := n.Links()
	must(t, err)
	if l := links.Links[6]; l.Name != "eth2" {
		t.Errorf("%+v", links.Links)
	}
}

// hca is a machine with one RDMA device on a function that is not bound yet.
func hca(rdma ...RDMA) Platform {
	f := connectX(0x1021, classInfiniBand).at("pci0000:00/0000:00:01.0", "0000:01:00.0", 0)
	f.Driver, f.NIC = "", &NIC{Interfaces: []Interface{{Name: "ib0", Type: infiniBand}}, RDMA: rdma}
	return Platform{Name: "hca", Functions: []Function{f}}
}

// nodeText is the number of a node, and its mode.
func nodeText(t *testing.T, n *Node, path string) string {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(filepath.Join(n.dir, path), &st))
	return fmt.Sprintf("%d:%d %o", unix.Major(st.Rdev), unix.Minor(st.Rdev), st.Mode)
}

// TestRDMANodes has the numbers and modes of the kernel's, those behind the fixed ones too.
func TestRDMANodes(t *testing.T) {
	n := newNode(t, hca(RDMA{Name: "mlx5_%d", CM: true}, RDMA{Name: "mlx5_%d", Number: 70}, RDMA{Name: "mlx5_9", NoMAD: true}))
	a := addr(t, "0000:01:00.0")
	must(t, n.Bind(a, "mlx5_core"))
	for name, want := range map[string]string{
		"uverbs0": "231:192 20666", "umad0": "231:0 20600", "issm0": "231:64 20600", "ucm0": "231:224 20666",
		"uverbs70": "507:38 20666", "umad70": "506:6 20600", "issm70": "505:6 20600", "uverbs1": "231:193 20666",
	} {
		class := map[byte]string{'v': "infiniband_verbs", 'm': "infiniband_mad", 's': "infiniband_mad", 'c': "infiniband_cm"}[name[1]]
		dir := "sys/class/" + class + "/" + name
		dev := strings.TrimSuffix(read(t, n, dir+"/dev"), "\n")
		number, mode, _ := strings.Cut(want, " ")
		if !n.real {
			number = "0:0"
		}
		if got := nodeText(t, n, "dev/infiniband/"+name); got != number+" "+mode || dev != number {
			t.Errorf("%s is %s, dev says %s, want %s", name, got, dev, want)
		}
		if !strings.Contains(read(t, n, dir+"/uevent"), "DEVNAME=infiniband/"+name+"\n") || !strings.HasPrefix(read(t, n, dir+"/ibdev"), "mlx5_") {
			t.Errorf("files of %s", name)
		}
	}
	if got := names(t, n, "sys/class/infiniband"); !slices.Equal(got, []string{"mlx5_0", "mlx5_1", "mlx5_9"}) {
		t.Errorf("devices %v", got)
	}
	must(t, n.Unbind(a))
	for _, dir := range []string{"dev/infiniband", "sys/bus/pci/devices/0000:01:00.0/infiniband", "sys/bus/pci/devices/0000:01:00.0/net"} {
		if exists(t, n, dir) {
			t.Errorf("%s is there", dir)
		}
	}
	for _, class := range []string{"net", "infiniband", "infiniband_verbs", "infiniband_mad", "infiniband_cm"} {
		if got := names(t, n, "sys/class/"+class); len(got) > 0 {
			t.Errorf("class %s has %v", class, got)
		}
	}
	// A plan that nobody carries out takes nothing for good.
	for range 3 {
		_, err := n.BindSteps(a, "mlx5_core")
		must(t, err)
	}
	must(t, n.Bind(a, "mlx5_core"))
	if !exists(t, n, "dev/infiniband/uverbs0") || exists(t, n, "dev/infiniband/uverbs2") {
		t.Errorf("nodes %v", names(t, n, "dev/infiniband"))
	}
}

// TestMove has what other namespaces see, and do not see.
func TestMove(t *testing.T) {
	n := newNode(t, hca(RDMA{Name: "mlx5_0"}))
	a, dir := addr(t, "0000:01:00.0"), "sys/bus/pci/devices/0000:01:00.0/"
	must(t, n.Bind(a, "mlx5_core"), n.MoveToPod("0000:01:00.0", true), n.MoveToPod("0000:01:00.0", true))
	for name, want := range map[string]bool{
		"sys/class/net/ib0": false, dir + "net/ib0": false, dir + "net": true, dir + "infiniband": true,
		"sys/class/infiniband/mlx5_0": false, dir + "infiniband/mlx5_0": false, dir + "infiniband_verbs/uverbs0/dev": true,
		"sys/class/infiniband_mad/umad0": true, "dev/infiniband/uverbs0": true,
	} {
		if exists(t, n, name) != want {
			t.Errorf("%s is there: %v", name, !want)
		}
	}
	if links, err := n.Links(); err != nil || len(links.Links) != 1 {
		t.Errorf("%v, %v", links, err)
	}
	if err := n.RenameInterface("ib0", "x"); !errors.Is(err, unix.ENODEV) {
		t.Errorf("rename in a pod: %v", err)
	}
	must(t, n.MoveToHost("0000:01:00.0"))
	if got := read(t, n, "sys/class/net/ib0/ifindex"); got != "2\n" || !exists(t, n, dir+"infiniband/mlx5_0/ports/1/pkeys/0") {
		t.Errorf("index %q", got)
	}
	must(t, n.MoveToPod("0000:01:00.0", true), n.Unbind(a), n.Bind(a, "mlx5_core"))
	if !exists(t, n, "sys/class/net/ib0") || len(names(t, n, scratchDir)) > 0 {
		t.Errorf("left aside: %v", names(t, n, scratchDir))
	}
	if err := n.MoveToPod("0000:99:00.0", false); !errors.Is(err, unix.ENODEV) {
		t.Error(err)
	}
}

// TestAddChildren has subfunctions and vDPA devices come and go, also with their function.
func TestAddChildren(t *testing.T) {
	n := newNode(t, Adapters())
	pf, vf := addr(t, "0000:65:00.0"), addr(t, "0000:65:00.2")
	name, err := n.AddSF(pf, SF{ID: 4, Number: 88, NIC: &NIC{Interfaces: []Interface{{Name: "sf88"}}}})
	must(t, err, n.AddVDPA(vf, "vdpa0", "vhost_vdpa"))
	dir := "sys/bus/pci/devices/0000:65:00.0/mlx5_core.sf.4"
	if name != "mlx5_core.sf.4" || read(t, n, dir+"/sfnum") != "88\n" || !exists(t, n, dir+"/net/sf88/ifindex") ||
		!exists(t, n, "sys/bus/auxiliary/devices/mlx5_core.sf.4") || !exists(t, n, "sys/bus/auxiliary/drivers/mlx5_core.sf/mlx5_core.sf.4") {
		t.Errorf("%s is not there", name)
	}
	if got, err := os.Readlink(filepath.Join(n.dir, dir, "subsystem")); err != nil || filepath.Base(got) != "auxiliary" {
		t.Errorf("%q, %v", got, err)
	}
	if !exists(t, n, "sys/bus/pci/devices/0000:65:00.2/vdpa0/vhost-vdpa-0/dev") || !exists(t, n, "dev/vhost-vdpa-0") {
		t.Error("no vhost node")
	}
	_, again := n.AddSF(pf, SF{ID: 4})
	for what, tt := range map[string]struct{ got, want error }{
		"twice":               {again, unix.EEXIST},
		"on vfio-pci":         {n.AddVDPA(addr(t, "0000:65:00.3"), "vdpa1", ""), unix.EOPNOTSUPP},
		"of nothing":          {n.AddVDPA(addr(t, "0000:99:00.0"), "vdpa1", ""), unix.ENODEV},
		"removal of nothing":  {n.RemoveChild("vdpa1"), unix.ENODEV},
		"removal of function": {n.RemoveChild("0000:65:00.0"), unix.ENODEV},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", what, tt.got, tt.want)
		}
	}
	must(t, n.Unbind(pf)) // with its VFs
	if exists(t, n, dir) || exists(t, n, "dev/vhost-vdpa-0") || exists(t, n, "sys/bus/pci/devices/0000:65:00.2") || len(n.VFs(pf)) > 0 {
		t.Error("something is left")
	}
	// A function that is removed takes them with it too.
	must(t, n.Bind(pf, "mlx5_core"), n.SetVFs(pf, 1, "mlx5_core"), n.AddVDPA(vf, "vdpa0", "vhost_vdpa"), n.AddVDPA(pf, "vdpa1", "vhost_vdpa"))
	if !exists(t, n, "dev/vhost-vdpa-1") {
		t.Error("no node of a second device")
	}
	must(t, n.Remove(pf))
	if exists(t, n, "dev/vhost-vdpa-0") || exists(t, n, "dev/vhost-vdpa-1") || exists(t, n, "sys/bus/pci/devices/0000:65:00.0") {
		t.Error("something is left")
	}
	for _, list := range []string{"sys/bus/vdpa/devices", "sys/bus/vdpa/drivers/vhost_vdpa", "sys/bus/auxiliary/devices"} {
		for _, name := range names(t, n, list) {
			if name != "bind" && name != "unbind" && name != "uevent" {
				t.Errorf("%s has %s", list, name)
			}
		}
	}
}

// TestRepresentors has them come with switchdev mode and with VFs.
func TestRepresentors(t *testing.T) {
	n := newNode(t, Adapters())
	pf, net := addr(t, "0000:65:00.0"), "sys/bus/pci/devices/0000:65:00.0/net"
	must(t, n.SetVFs(pf, 0, ""), n.SetSwitchdev(pf, true), n.SetSwitchdev(pf, true))
	if got := names(t, n, net); !slices.Equal(got, []string{"ens1f0np0"}) || read(t, n, net+"/ens1f0np0/phys_switch_id") == "" {
		t.Errorf("%v", got)
	}
	must(t, n.SetVFs(pf, 2, "mlx5_core"))
	if got := names(t, n, net); !slices.Equal(got, []string{"ens1f0np0", "ens1f0np0_0", "ens1f0np0_1"}) || read(t, n, net+"/ens1f0np0_1/phys_port_name") != "pf0vf1\n" {
		t.Errorf("%v", got)
	}
	must(t, n.SetSwitchdev(pf, false))
	if got := names(t, n, net); len(got) != 1 || exists(t, n, net+"/ens1f0np0/phys_switch_id") {
		t.Errorf("%v", got)
	}
	if err := n.SetSwitchdev(addr(t, "0000:01:00.0"), true); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("of an adapter without a switch: %v", err)
	}
}

// TestUIO has the node of a function on a UIO driver.
func TestUIO(t *testing.T) {
	n := newNode(t, Adapters())
	a := addr(t, "0000:65:00.6")
	if !exists(t, n, "dev/uio7") || !exists(t, n, "sys/class/uio/uio7") {
		t.Error("no UIO device")
	}
	must(t, n.Unbind(a))
	if exists(t, n, "dev/uio7") || exists(t, n, "sys/bus/pci/devices/0000:65:00.6/uio") {
		t.Error("a UIO device without a driver")
	}
	must(t, n.Bind(addr(t, "0000:65:00.5"), "uio_pci_generic"))
	if !exists(t, n, "dev/uio0") {
		t.Errorf("not the lowest number: %v", names(t, n, "dev"))
	}
}

// TestShared has the nodes of modules come and go.
func TestShared(t *testing.T) {
	n := newNode(t, cpuOnly())
	for path, want := range map[string]string{
		"/dev/vhost-net": "10:238 20600", "/dev/net/tun": "10:200 20600", "/dev/infiniband/rdma_cm": "10:122 20666",
	} {
		must(t, n.AddShared(path))
		if number, mode, _ := strings.Cut(want, " "); nodeText(t, n, path) != want && (n.real || nodeText(t, n, path) != "0:0 "+mode) {
			t.Errorf("%s is %s, want %s", path, nodeText(t, n, path), number)
		}
		must(t, n.RemoveShared(path))
		if exists(t, n, path) || exists(t, n, "sys/class/misc/"+filepath.Base(path)) {
			t.Errorf("%s is there", path)
		}
		if err := n.RemoveShared(path); !errors.Is(err, unix.ENOENT) {
			t.Errorf("twice: %v", err)
		}
	}
	if err := n.AddShared("/dev/vfio/vfio"); !errors.Is(err, unix.EINVAL) {
		t.Errorf("what is always there: %v", err)
	}
}
