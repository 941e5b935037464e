package declare

import (
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
)

// Declare applies the table to a snapshot. It needs no past.
func (t Table) Declare(s *host.Snapshot, _ Past) Declaration {
	d := Declaration{Others: map[string]finding.Evidence{}}
	byName := make(map[string]*Resource, len(t))
	for _, r := range t {
		byName[r.Resource] = &Resource{Name: r.Resource}
	}
	for i := range s.Functions {
		f := &s.Functions[i]
		name := t.Resource(f.Identity)
		if name == "" {
			if f.Known {
				d.Others[f.Address.String()] = class(f)
			} else {
				d.Findings = append(d.Findings, Unreadable(f))
			}
			continue
		}
		if f.Err != nil {
			d.Findings = append(d.Findings, Unreadable(f).For(name))
		}
		if why, refused := Refusal(f); refused {
			if f.Known {
				d.Findings = append(d.Findings, why.For(name))
			}
			continue
		}
		r := byName[name]
		r.Devices = append(r.Devices, device(f, name))
	}
	for _, r := range t {
		if res := byName[r.Resource]; len(res.Devices) > 0 {
			d.Resources = append(d.Resources, *res)
			byName[r.Resource] = &Resource{} // a name may stand in several rows
		}
	}
	d.Findings = append(d.Findings, Entries(s)...)
	finding.Sort(d.Findings)
	d.Findings = append(d.Findings, Stale(s)...) // what the one or the other above may come from
	return d
}

// device is a function that nothing refuses.
func device(f *host.Function, resource string) Device {
	node := Node{Path: host.DevicesDir + "/" + f.Cdev.Name, Permissions: "rw"}
	return Device{ID: f.Address.String(), Function: *f, Present: true, Nodes: []Node{node}, Faults: Faults(f, resource)}
}

// Environment is empty: the VM finds its devices by itself.
func (t Table) Environment(string, []*Device) map[string]string { return nil }

// Again judges a single function, read anew: whether it is of the same resource, and what
// speaks against handing it out.
func (t Table) Again(f *host.Function, was *Device, resource string) Device {
	absent := func(why finding.Finding) Device {
		return Device{ID: was.ID, Function: *f, Faults: []finding.Finding{why.For(resource)}}
	}
	if t.Resource(f.Identity) != resource {
		return absent(finding.New(finding.ChangedClass(), was.ID, class(f)))
	}
	if why, refused := Refusal(f); refused {
		return absent(why)
	}
	return device(f, resource)
}
