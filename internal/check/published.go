package check

import (
	"strings"

	"kata-device-plugin/internal/manifest"
)

// pciAddressKey is the attribute that says which PCI function a device is.
const pciAddressKey = "resource.kubernetes.io/pciBusID"

// DeviceName names a device of Dynamic Resource Allocation in a cluster.
type DeviceName struct{ Driver, Pool, Device string }

// String is the name as people write it.
func (d DeviceName) String() string { return d.Driver + "/" + d.Pool + "/" + d.Device }

// Published is a device of a ResourceSlice.
type Published struct {
	DeviceName
	Slice *manifest.Object
	// Node is the node that the device is on, "" where more than one can reach it.
	Node string
	// Device has its attributes and its capacity, wherever the version of the API has them.
	Device manifest.Value
	// Address is its PCI address in lower case, "" where the driver does not tell.
	Address string
	Taints  []Taint

	at manifest.Value // the device in the list of its slice
}

// findPublished lists the devices of the newest generation of each pool: the scheduler takes no others.
func (w *World) findPublished() []Published {
	var devices []Published
	for _, s := range w.slices {
		if s.generation < w.poolOf[s.poolKey].newest.generation {
			continue
		}
		for d := range s.Get("spec", "devices").Each() {
			devices = append(devices, s.device(d))
		}
	}
	return devices
}

func (s *slice) device(at manifest.Value) Published {
	d := at
	if basic := at.Get("basic"); basic.Exists() { // v1beta1
		d = basic
	}
	p := Published{DeviceName: DeviceName{s.driver, s.poolKey.name, at.Get("name").Text()}, Slice: s.Object, Node: s.node, Device: d, at: at}
	if own := d.Get("nodeName").Text(); own != "" {
		p.Node = own
	}
	p.Address = strings.ToLower(d.Get("attributes", pciAddressKey, "string").Text())
	for t := range d.Get("taints").Each() {
		if effect := t.Get("effect").Text(); effect == "NoSchedule" || effect == "NoExecute" {
			p.Taints = append(p.Taints, Taint{t.Get("key").Text(), t.Get("value").Text(), effect})
		}
	}
	return p
}

// own is the value of an attribute of the driver's domain, which a name need not have.
func (p Published) own(name string) manifest.Value {
	v := p.Device.Get("attributes", p.Driver+"/"+name)
	if !v.Exists() {
		v = p.Device.Get("attributes", name)
	}
	for typed := range v.Entries() {
		return typed
	}
	return manifest.Value{}
}

// untolerated is a taint of the device that keeps it from a request.
func (p Published) untolerated(request manifest.Value) (Taint, bool) {
	for _, t := range p.Taints {
		if !tolerates(request, t) {
			return t, true
		}
	}
	return Taint{}, false
}
