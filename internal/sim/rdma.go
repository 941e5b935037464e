package sim

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// rdmaClient is a kind of node of RDMA devices. The first of a kind have fixed numbers, those
// after them are in a region of their own, which begins again at minor 0
// (drivers/infiniband/core: user_mad.c, uverbs_main.c, and ucm.c, which is gone since Linux
// 5.3).
type rdmaClient struct {
	class, prefix string
	minor, fixed  int // the fixed numbers
	major         int // of the region, which is dynamic
	mode          uint32
}

func verbsClient() rdmaClient { return rdmaClient{"infiniband_verbs", "uverbs", 192, 32, 507, 0o666} }
func madClient() rdmaClient   { return rdmaClient{"infiniband_mad", "umad", 0, 64, 506, 0o600} }
func smClient() rdmaClient    { return rdmaClient{"infiniband_mad", "issm", 64, 64, 505, 0o600} }
func cmClient() rdmaClient    { return rdmaClient{"infiniband_cm", "ucm", 224, 32, 504, 0o666} }

// rdmaDevice is an RDMA device that is there.
type rdmaDevice struct {
	RDMA
	classDevice
	clients      []*classDevice // what RDMA's modules make of it: uverbsN, umadN, issmN, ucmN
	uverbs, umad int
	away         bool // in another network namespace
}

// addRDMA plans an RDMA device of a device, in the order of ib_register_device
// (drivers/infiniband/core/device.c): device and class link, then its ports, then the
// devices of its clients. Those come in the order in which the modules were loaded; here
// ib_uverbs is the first.
func (n *Node) addRDMA(d *device, r RDMA) []Step {
	if strings.Contains(r.Name, "%d") {
		r.Name = n.freeRDMAName(r.Name)
	}
	rd := &rdmaDevice{RDMA: r}
	rd.classDevice = classDevice{parent: d.path, class: "infiniband", name: r.Name, files: []file{
		attribute("node_type", "1: CA"),
		{name: "uevent", mode: 0o644, text: "NAME=" + r.Name + "\n"},
	}}
	n.rdmaNames[r.Name] = true
	n.takeRDMA(rd)
	d.nic.rdma = append(d.nic.rdma, rd)
	steps := append(n.addClassDevice(&rd.classDevice), Step{"infiniband/" + r.Name + "/ports", func() error { return n.addPorts(rd) }})
	for _, c := range rd.clients {
		steps = append(steps, n.addClassDevice(c)...)
	}
	return steps
}

// dropRDMA undoes addRDMA.
func (n *Node) dropRDMA(r *rdmaDevice) []Step {
	var steps []Step
	for _, c := range slices.Backward(r.clients) {
		steps = append(steps, n.dropClassDevice(c)...)
	}
	steps = append(steps, Step{"infiniband/" + r.Name + "/ports", func() error { return n.withdrawIfThere(r.dir() + "/ports") }})
	return append(steps, n.dropClassDevice(&r.classDevice)...)
}

func (n *Node) addPorts(r *rdmaDevice) error {
	layer, key := "Ethernet", r.PKey
	if r.InfiniBand {
		layer = "InfiniBand"
	}
	if key == 0 {
		key = 0xffff
	}
	return n.publish(r.dir()+"/ports", []string{"1", "1/pkeys"}, []file{
		attribute("1/link_layer", layer), attribute("1/state", "4: ACTIVE"),
		attribute("1/pkeys/0", fmt.Sprintf("0x%04x", key)),
	}, nil)
}

// takeRDMA takes the numbers of a device's clients.
func (n *Node) takeRDMA(r *rdmaDevice) {
	r.uverbs = takeNumber(&n.uverbs, r.Number)
	r.clients = []*classDevice{r.client(verbsClient(), r.uverbs, attribute("abi_version", "6"))}
	if !r.NoMAD {
		r.umad = takeNumber(&n.umads, r.Number)
		port := attribute("port", "1")
		r.clients = append(r.clients, r.client(madClient(), r.umad, port), r.client(smClient(), r.umad, port))
	}
	if r.CM {
		r.clients = append(r.clients, r.client(cmClient(), r.uverbs))
	}
}

// client is the device of a client. Its parent is that of the RDMA device.
func (r *rdmaDevice) client(kind rdmaClient, number int, more ...file) *classDevice {
	name := kind.prefix + strconv.Itoa(number)
	char := &charNode{major: rdmaMajor, minor: kind.minor + number, path: path.Join("infiniband", name), mode: kind.mode}
	if number >= kind.fixed {
		char.major, char.minor = kind.major, number-kind.fixed
	}
	return &classDevice{parent: r.parent, class: kind.class, name: name, files: append(more, attribute("ibdev", r.Name)), char: char}
}

// freeRDMA gives the numbers back.
func (n *Node) freeRDMA(r *rdmaDevice) {
	n.uverbs.free(r.uverbs)
	if !r.NoMAD {
		n.umads.free(r.umad)
	}
}

// freeRDMAName is the first name of a pattern that no device has.
func (n *Node) freeRDMAName(pattern string) string {
	for k := 0; ; k++ {
		if name := fmt.Sprintf(pattern, k); !n.rdmaNames[name] {
			return name
		}
	}
}
