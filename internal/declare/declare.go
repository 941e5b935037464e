package declare

import (
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
)

// Device is one schedulable unit of a resource: one physical function.
type Device struct {
	// ID is the PCI address. It is the same string in kubelet, in CDI and on the
	// terminal, and names the same hardware for as long as that is in its slot.
	ID string
	// Function holds the facts of the last look at which the device was there.
	Function host.Function
	// Present says whether the character device is there now. What is not present is
	// in no CDI spec.
	Present bool
	// Faults are the reasons why the device must not be handed out. A device without
	// any is healthy.
	Faults []finding.Finding
}

// Healthy says whether the device may be handed out.
func (d *Device) Healthy() bool { return len(d.Faults) == 0 }

// Node is the path of the device's character device on the host, "" when it is not
// present.
func (d *Device) Node() string {
	if !d.Present {
		return ""
	}
	return host.DevicesDir + "/" + d.Function.Cdev.Name
}

// Resource is an extended resource with its devices, sorted by address.
type Resource struct {
	Name    string
	Devices []Device
}

// Declaration is everything that a snapshot amounts to.
type Declaration struct {
	// Resources are those that have a device, in the order of the table.
	Resources []Resource
	// Findings are the reasons why functions and entries are not declared, and what
	// else the look met. The faults of declared devices are with the devices.
	Findings []finding.Finding

	// others are the functions of the snapshot that are of no resource, with the class
	// that says so.
	others map[string]finding.Evidence
}

// Declare applies the table to a snapshot.
func (t Table) Declare(s *host.Snapshot) Declaration {
	d := Declaration{others: map[string]finding.Evidence{}}
	byName := make(map[string]*Resource, len(t))
	for _, r := range t {
		byName[r.Resource] = &Resource{Name: r.Resource}
	}
	for i := range s.Functions {
		f := &s.Functions[i]
		name := t.Resource(f.Identity)
		if name == "" {
			if f.Known {
				d.others[f.Address.String()] = class(f)
			} else {
				d.Findings = append(d.Findings, unreadable(f))
			}
			continue
		}
		if f.Err != nil {
			d.Findings = append(d.Findings, unreadable(f).For(name))
		}
		if why, refused := Refusal(f); refused {
			if f.Known {
				d.Findings = append(d.Findings, why.For(name))
			}
			continue
		}
		r := byName[name]
		r.Devices = append(r.Devices, Device{ID: f.Address.String(), Function: *f, Present: true, Faults: faults(f, name)})
	}
	for _, r := range t {
		if res := byName[r.Resource]; len(res.Devices) > 0 {
			d.Resources = append(d.Resources, *res)
			byName[r.Resource] = &Resource{} // a name may stand in several rows
		}
	}
	d.Findings = append(d.Findings, entries(s)...)
	finding.Sort(d.Findings)
	return d
}

// Judge says whether a single function, read anew, is what a device was declared as:
// the same resource, and nothing against handing it out.
func (t Table) Judge(f *host.Function, resource string) []finding.Finding {
	if t.Resource(f.Identity) != resource {
		return []finding.Finding{finding.New(finding.ChangedClass(), f.Address.String(), class(f)).For(resource)}
	}
	if why, refused := Refusal(f); refused {
		return []finding.Finding{why.For(resource)}
	}
	return faults(f, resource)
}
