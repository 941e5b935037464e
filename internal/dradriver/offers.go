package dradriver

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/finding"
)

// Keys of the taints that keep the scheduler from a device. The value is the ID of the finding.
const (
	// taintUnhealthy: the device would not start in a VM.
	taintUnhealthy = dra.Driver + "/unhealthy"
	// taintPlugged: a device plugin offers the device, or a container has it from one.
	taintPlugged = dra.Driver + "/held-by-device-plugin"
	// taintWithheld: a claim has the device whose record cannot be read, or has it by another name.
	taintWithheld = dra.Driver + "/withheld"
)

// offer is a device with what speaks against handing it out.
type offer struct {
	device *dra.Device
	// against is why nobody is to get it now, by the key of the taint that says so.
	against map[string]finding.Finding
	// held says that a claim has it, or hardware that comes with it.
	held bool
	// unpublished is why it is not published at all.
	unpublished *finding.Finding
}

// world is all that decides what is offered.
type world struct {
	inventory *dra.Inventory
	// refused are types that are not this driver's to offer on this node, and why.
	refused map[dra.Type]finding.Finding
	// plugged and withheld are functions by address, and whose they are.
	plugged, withheld map[string]string
	// records are the claims that have devices.
	records []claim.Record
	// before are the devices as they were published last, by name.
	before map[string]*dra.Device
	// tainted says whether the API server keeps taints. Before 1.36 it drops them, and then a
	// device that nobody is to get cannot be published.
	tainted bool
}

// offers judges every device: those that are there, and those that a claim has and that have left.
func (w *world) offers() []offer {
	held := map[string]bool{}
	holders := map[string][]holder{}
	for _, r := range w.records {
		for _, d := range r.Devices {
			held[d.Name] = held[d.Name] || !d.Admin
			if d.Admin {
				continue
			}
			for _, a := range d.Group {
				holders[a] = append(holders[a], holder{claim: r.Namespace + "/" + r.Name, device: d.Name})
			}
		}
	}
	var all []offer
	for i := range w.inventory.Devices {
		d := &w.inventory.Devices[i]
		o := w.judge(d, held[d.Name], d.Faults)
		w.alias(&o, holders)
		all = append(all, o)
	}
	for name := range held {
		d, known := w.before[name]
		if _, there := w.inventory.Device(name); there || !known {
			continue
		}
		all = append(all, w.judge(d, held[name], []finding.Finding{w.absence(d)}))
	}
	slices.SortFunc(all, func(a, b offer) int { return a.device.Function.Address.Compare(b.device.Function.Address) })
	return all
}

// holder is a claim that has a function, and the device that it was allocated.
type holder struct{ claim, device string }

// alias says that a claim has a device's hardware by another name: when the first function of a
// group leaves, the next one gives the device its name. To the scheduler that is a free device.
func (w *world) alias(o *offer, holders map[string][]holder) {
	for _, a := range o.device.Group {
		for _, h := range holders[a.String()] {
			if h.device == o.device.Name {
				continue
			}
			f := finding.New(finding.HeldByClaim(), o.device.Function.Address.String(),
				finding.Evidence{Path: "claim " + h.claim, Value: h.device})
			if _, known := o.against[taintWithheld]; !known {
				o.against[taintWithheld] = f
			}
			if !w.tainted && !o.held && o.unpublished == nil {
				o.unpublished = &f
			}
			o.held = true
			return
		}
	}
}

// absence is why a device is not there that was.
func (w *world) absence(d *dra.Device) finding.Finding {
	address := d.Function.Address.String()
	if f, known := w.inventory.Why(address); known {
		return f
	}
	return finding.New(finding.Gone(), address)
}

// judge says what is to be made of one device.
func (w *world) judge(d *dra.Device, held bool, faults []finding.Finding) offer {
	o := offer{device: d, held: held, against: map[string]finding.Finding{}}
	address := d.Function.Address.String()
	if len(faults) > 0 {
		o.against[taintUnhealthy] = faults[0]
	}
	if f, refused := w.refused[d.Type]; refused {
		o.unpublished = &f
		return o
	}
	for _, a := range d.Group {
		if whose, plugged := w.plugged[a.String()]; plugged {
			o.against[taintPlugged] = finding.New(finding.Plugged(), address, finding.Evidence{Path: "kubelet's pod-resources", Value: whose})
		}
		if why, withheld := w.withheld[a.String()]; withheld {
			o.against[taintWithheld] = finding.New(finding.RecordDamaged(), address, finding.Evidence{Path: why})
		}
	}
	if len(o.against) > 0 && !w.tainted && !held {
		f := o.first()
		o.unpublished = &f
	}
	return o
}

// first is the gravest reason against a device.
func (o *offer) first() finding.Finding {
	for _, key := range []string{taintUnhealthy, taintPlugged, taintWithheld} {
		if f, ok := o.against[key]; ok {
			return f
		}
	}
	return finding.Finding{}
}

// published are the offers as the API server gets them.
func published(offers []offer, tainted bool) []dra.Offer {
	var all []dra.Offer
	for _, o := range offers {
		if o.unpublished != nil {
			continue
		}
		p := dra.Offer{Device: o.device}
		if tainted {
			p.Taints = o.taints()
		}
		all = append(all, p)
	}
	return all
}

// taints are sorted, so that the same state is the same object.
func (o *offer) taints() []resourceapi.DeviceTaint {
	var all []resourceapi.DeviceTaint
	for _, key := range []string{taintPlugged, taintUnhealthy, taintWithheld} {
		if f, ok := o.against[key]; ok {
			all = append(all, resourceapi.DeviceTaint{Key: key, Value: f.ID, Effect: resourceapi.DeviceTaintEffectNoSchedule})
		}
	}
	return all
}
