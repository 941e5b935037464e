package nic

import (
	"cmp"
	"path"
	"strings"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicconfig"
)

// The nodes that belong to no device alone.
const (
	vfioNode   = "/dev/vfio/vfio"
	rdmaCMNode = "/dev/infiniband/rdma_cm"
	vhostNode  = "/dev/vhost-net"
	tunNode    = "/dev/net/tun"
)

// builder puts together what a container is given with a device, and what speaks against it.
type builder struct {
	u        *unit
	resource string
	shared   func(path string) (fault string)
	inUse    bool // by a pod: what is not to be seen is not missing
	// rdmaTaken are the nodes of the RDMA devices that are to be seen.
	rdmaTaken map[string]bool

	nodes, with []declare.Node
	about       map[string]map[string]string
	faults      []finding.Finding
}

func (b *builder) fault(k finding.Kind, e ...finding.Evidence) {
	b.faults = append(b.faults, finding.New(k, b.u.id, e...).For(b.resource))
}

// need gives a node that belongs to no device alone, and without which the device is of no
// use.
func (b *builder) need(node string) {
	b.with = append(b.with, declare.Node{Path: node, Permissions: "rw"})
	if fault := b.shared(node); fault != "" {
		b.fault(finding.NodeMissing(), finding.Evidence{Path: node, Value: fault})
	}
}

// own gives a node of the device.
func (b *builder) own(n declare.Node, fault string) {
	if fault != "" {
		b.fault(finding.NodeMissing(), finding.Evidence{Path: n.OnHost(), Value: fault})
		return
	}
	n.Permissions = "rw"
	b.nodes = append(b.nodes, n)
}

// tell adds what a container is told of the device: values of one source.
func (b *builder) tell(source string, pairs ...string) {
	values := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		values[pairs[i]] = pairs[i+1]
	}
	b.about[source] = values
}

// device is a unit as a pool hands it out.
func (b *builder) device(p *pool, s *nicconfig.Selector) declare.Device {
	u := b.u
	b.about = map[string]map[string]string{}
	b.tell("generic", "deviceID", u.id)
	if p.AdditionalInfo != nil {
		b.about["extra"] = p.AdditionalInfo.For(u.f.Address)
	}
	if name := representor(u.pf, u.f.Network.VFIndex); name != "" && u.sf == "" {
		b.tell(eswitch, "representor", name)
	}
	switch {
	case u.sf != "":
	case onVFIO(u.f):
		b.vfio(p.VFIO)
	case onUIO(u.f):
		b.uio()
	}
	if s.IsRDMA {
		b.rdma()
	}
	if s.VDPAType != nicconfig.NoVDPA {
		b.vdpa(s.VDPAType)
	}
	if s.NeedVhostNet {
		b.tell("vhost", "net-mount", vhostNode, "tun-mount", tunNode)
		b.need(vhostNode)
		b.need(tunNode)
	}
	if u.driverless() {
		b.nodes, b.with, b.faults = nil, nil, nil // which all follow from this one
		at := host.SysPath(u.f.Address, "driver")
		if u.f.Driver != "" {
			at = "/sys/bus/auxiliary/devices/" + u.sf + "/driver"
		}
		b.fault(finding.NoDriver(), finding.Evidence{Path: at, Value: "none"})
	}
	return declare.Device{ID: u.id, Function: *u.f, Present: true, Nodes: b.nodes, With: b.with, About: b.about,
		NoTopology: p.ExcludeTopology, Faults: b.faults}
}

// vfio gives the node of the IOMMU group or the character device. With both, Kata
// Containers would attach the device twice, so that is for who asks for it.
func (b *builder) vfio(want nicconfig.VFIONodes) {
	f, n := b.u.f, b.u.seen
	if f.Group == nil {
		b.tell("vfio", "mount", vfioNode)
		b.fault(finding.NoIOMMUGroup(), finding.Evidence{Path: host.SysPath(f.Address, "iommu_group"), Value: "none"})
		return
	}
	if !n.NoIOMMU { // which has no DMA ownership
		b.viable()
	}
	fault := "none"
	group := declare.Node{Path: "/dev/vfio/" + f.Group.Number}
	if g := n.GroupNode; g != nil {
		group, fault = groupNode(g.Path), g.Fault
	}
	values := []string{}
	ready := f.Cdev != nil && f.Cdev.State == host.CdevReady
	if want != nicconfig.CdevNode && (fault == "" || !ready || want == nicconfig.BothNodes) {
		values = append(values, "mount", vfioNode, "dev-mount", group.Path)
		b.own(group, fault)
		b.need(vfioNode)
	}
	if want != nicconfig.GroupNode || len(values) == 0 {
		values = append(values, b.cdev()...)
	}
	b.tell("vfio", values...)
}

// cdev gives the character device, and tells its place.
func (b *builder) cdev() []string {
	c := b.u.f.Cdev
	if c == nil {
		b.fault(finding.NodeMissing(), finding.Evidence{Path: host.SysPath(b.u.f.Address, "vfio-dev"), Value: "none"})
		return nil
	}
	path, fault := host.DevicesDir+"/"+c.Name, ""
	if c.State != host.CdevReady {
		fault = cmp.Or(c.Detail, "not ready")
	}
	b.own(declare.Node{Path: path}, fault)
	return []string{"cdev-mount", path}
}

// groupNode is a group's node as a container gets it. Of a group that VFIO invented for a
// function without an IOMMU it has another name on the host (drivers/vfio/group.c).
func groupNode(on string) declare.Node {
	dir, name := path.Split(on)
	if number, ok := strings.CutPrefix(name, "noiommu-"); ok {
		return declare.Node{Path: dir + number, Host: on}
	}
	return declare.Node{Path: on}
}

func (b *builder) viable() {
	for _, m := range b.u.f.Companions() {
		if !declare.YieldsDMA(m) {
			b.fault(finding.NotViable(), finding.Evidence{Path: host.SysPath(m.Address, "driver"), Value: m.Driver})
		}
	}
}

func (b *builder) uio() {
	if all := b.u.seen.UIO; len(all) > 0 {
		b.tell("uio", "mount", all[0].Path)
		b.own(declare.Node{Path: all[0].Path}, all[0].Fault)
		return
	}
	b.tell("uio")
	b.fault(finding.NodeMissing(), finding.Evidence{Path: host.SysPath(b.u.f.Address, "uio"), Value: "none"})
}

func (b *builder) vdpa(want nicconfig.VDPAType) {
	b.tell("vdpa")
	all := b.u.seen.VDPA
	switch {
	case len(all) == 0:
		b.fault(finding.NodeMissing(), finding.Evidence{Path: "the vDPA device of " + b.u.id, Value: "none"})
	case all[0].Driver == "":
		b.fault(finding.NodeMissing(), finding.Evidence{Path: "/sys/bus/vdpa/devices/" + all[0].Name + "/driver", Value: "none"})
	case want == nicconfig.VirtioVDPA:
	case all[0].Node == nil:
		b.fault(finding.NodeMissing(), finding.Evidence{Path: "the vhost node of " + all[0].Name, Value: "none"})
	default:
		b.tell("vdpa", "mount", all[0].Node.Path)
		b.own(declare.Node{Path: all[0].Node.Path}, all[0].Node.Fault)
	}
}
