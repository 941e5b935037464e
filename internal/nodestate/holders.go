package nodestate

import (
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/podresources"
)

// offers enters what kubelet has as allocatable.
func (j *join) offers() {
	if !j.fresh[Allocatable] {
		return
	}
	for name, ids := range j.offered {
		for _, id := range ids {
			if a, ok := j.address(name, id); ok {
				j.function(a).of(name)
				j.resource(name)
			}
		}
	}
	for name, r := range j.resources {
		r.Offered = len(j.offered[name])
		if name == None {
			r.Offered = -1
		}
	}
	for i := range j.s.Units {
		u := &j.s.Units[i]
		_, yes := slices.BinarySearch(j.offered[u.Resource], u.ID)
		u.Offered = is(yes)
	}
}

// holders enters who has which device.
func (j *join) holders() {
	if !j.fresh[Pods] {
		return
	}
	claims := map[string][]ClaimRecord{}
	for _, r := range j.facts.Claims.Value.Records {
		name := r.Namespace + "/" + r.Name
		claims[name] = append(claims[name], r)
	}
	held := map[unitKey]bool{}
	for i := range j.facts.Pods.Value {
		p := &j.facts.Pods.Value[i]
		from := len(j.s.Allocations)
		for k := range p.Containers {
			c := &p.Containers[k]
			for _, d := range c.Devices {
				given := Allocation{Device: d.ID, By: ByDevicePlugin, Resource: d.Resource, Admin: No,
					Namespace: p.Namespace, Pod: p.Name, Container: c.Name}
				held[unitKey{d.Resource, d.ID}] = true
				if a, ok := j.address(d.Resource, d.ID); ok {
					j.resource(d.Resource)
					given.Address = a
					j.allocate(given)
				} else {
					j.s.Elsewhere = append(j.s.Elsewhere, given)
				}
			}
			for _, of := range c.Claims {
				j.claimed(p, c, of, claims[of.Namespace+"/"+of.Name])
			}
		}
		if mine := j.s.Allocations[from:]; len(mine) > 0 {
			uid := j.uid(p)
			for k := range mine {
				mine[k].UID = uid
			}
		}
	}
	for name, r := range j.resources {
		if name != None {
			r.Allocated = 0
		}
	}
	for key := range held {
		if r, ours := j.resources[key.resource]; ours {
			r.Allocated++
		}
	}
	j.idle(held)
}

// idle enters the devices that nobody has, of other plugins too, and counts them where kubelet's record
// can be asked as well: a pod's init containers are in it alone.
func (j *join) idle(held map[unitKey]bool) {
	if !j.fresh[Allocatable] {
		return
	}
	count := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(j.offered)) {
		for _, id := range j.offered[name] {
			key := unitKey{name, id}
			if held[key] || j.reserved(key) {
				continue
			}
			count[name]++
			one := Idle{Resource: name, ID: id}
			if a, ok := j.address(name, id); ok {
				one.Address = a.String()
			}
			j.s.Idle = append(j.s.Idle, one)
		}
	}
	for name, r := range j.resources {
		if name != None && j.fresh[Record] && j.fresh[PodUIDs] {
			r.Free = count[name]
		}
	}
}

// reserved says whether kubelet keeps a unit for a pod that lives, whose containers do not have it: it was
// an init container's, and goes to nobody else before the pod has ended.
func (j *join) reserved(key unitKey) bool {
	return j.fresh[Record] && slices.ContainsFunc(j.given[key], func(g Given) bool { return j.living()[g.UID] })
}

// living are the UIDs of pods in kubelet's record that live: one of a pod's entries is that of a container
// which kubelet names with the device, or the Pods API knows the pod, and not as one that has ended.
func (j *join) living() map[string]bool {
	if j.alive != nil {
		return j.alive
	}
	j.alive = map[string]bool{}
	if j.fresh[PodUIDs] {
		for _, p := range j.facts.PodUIDs.Value {
			j.alive[p.UID] = !p.Ended
		}
	}
	for i := range j.s.Allocations {
		a := &j.s.Allocations[i]
		for _, g := range j.given[unitKey{a.Resource, a.Device}] {
			if g.Container == a.Container && (a.UID == "" || a.UID == g.UID) {
				j.alive[g.UID] = true
			}
		}
	}
	return j.alive
}

func (j *join) allocate(a Allocation) {
	j.s.Allocations = append(j.s.Allocations, a)
	if a.Resource != "" {
		j.function(a.Address).of(a.Resource)
	} else {
		j.function(a.Address)
	}
}

// claimed enters the devices of a claim that a container has. Which they are the driver's record
// says, or the device's own name; never the CDI names that kubelet tells, which it adds up over
// the devices of a claim.
func (j *join) claimed(p *podresources.Pod, c *podresources.Container, of podresources.Claim, records []ClaimRecord) {
	if uids := claimUIDs(of); len(uids) > 0 {
		records = slices.DeleteFunc(slices.Clone(records), func(r ClaimRecord) bool { return !slices.Contains(uids, r.UID) })
	}
	a := Allocation{By: ByDRA, Driver: draname.Driver, Namespace: p.Namespace, Pod: p.Name, Container: c.Name, Claim: of.Name}
	seen := map[[2]string]bool{}
	enter := func(pool, name string, recorded *ClaimDevice) {
		if seen[[2]string{pool, name}] {
			return
		}
		seen[[2]string{pool, name}] = true
		a := a
		a.Pool, a.Device = pool, name
		at, ok := j.place(name, recorded)
		if !ok {
			j.s.Elsewhere = append(j.s.Elsewhere, a)
			return
		}
		a.Address = at
		if recorded != nil {
			a.Request, a.Admin = strings.Join(recorded.Requests, ","), is(recorded.Admin)
		}
		j.allocate(a)
	}
	for _, d := range of.Devices {
		switch d.Driver {
		case draname.Driver:
			enter(d.Pool, d.Device, recorded(records, d.Pool, d.Device))
		case "":
			// kubelet before 1.31 names no devices: all that the record has are the claim's.
			for _, r := range records {
				for k := range r.Devices {
					enter(r.Devices[k].Pool, r.Devices[k].Name, &r.Devices[k])
				}
			}
		default:
			other := a
			other.Driver, other.Pool, other.Device = d.Driver, d.Pool, d.Device
			j.s.Elsewhere = append(j.s.Elsewhere, other)
		}
	}
}

// place is where a device of a claim is.
func (j *join) place(name string, recorded *ClaimDevice) (pci.Address, bool) {
	if recorded != nil {
		if a, err := pci.ParseAddress(recorded.Address); err == nil {
			return a, true
		}
	}
	uid, a, ok := draname.Parse(name)
	return a, ok && uid == ""
}

// recorded finds a device in records of one claim's name. Where kubelet does not tell the claim's UID there may be several,
// since a claim that was made anew has another record; the last one counts.
func recorded(records []ClaimRecord, pool, name string) *ClaimDevice {
	for i := range slices.Backward(records) {
		for k := range records[i].Devices {
			if d := &records[i].Devices[k]; d.Pool == pool && d.Name == name {
				return d
			}
		}
	}
	return nil
}
