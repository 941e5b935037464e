package nic

import (
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// past is what was before, by device.
type past struct {
	// facts are those of the last look at which a device was announced, by the address of
	// its function or the name of the subfunction.
	facts map[string]*host.Function
	// at is where a device was announced: by ID, then by resource.
	at map[string][]place
	// held are the resources that containers have a device as, by ID.
	held map[string][]string
	// announced, home, healthy and holds are shares by resource: all that were announced,
	// those of them that have not left, those that were healthy, and those that containers
	// have.
	announced, home, healthy, holds map[string]shares
	// known says whether kubelet's record could be read.
	known bool
}

// place is a device as it was announced.
type place struct {
	resource string
	device   *declare.Device
}

func newPast(p declare.Past) *past {
	all := &past{
		facts: map[string]*host.Function{}, at: map[string][]place{}, held: map[string][]string{},
		announced: map[string]shares{}, home: map[string]shares{}, healthy: map[string]shares{}, holds: map[string]shares{}, known: p.Held != nil,
	}
	for i := range p.Announced {
		r := &p.Announced[i]
		announced, home, healthy := shares{}, shares{}, shares{}
		for j := range r.Devices {
			d := &r.Devices[j]
			key := d.ID
			if announced.add(d.ID) {
				key = d.Function.Address.String()
				if d.Healthy() {
					healthy.add(d.ID)
				}
				if !d.Left {
					home.add(d.ID)
				}
			} else {
				all.at[d.ID] = append(all.at[d.ID], place{r.Name, d})
			}
			if all.facts[key] == nil || d.Present {
				all.facts[key] = &d.Function
			}
		}
		all.announced[r.Name], all.home[r.Name], all.healthy[r.Name] = announced, home, healthy
	}
	for resource, ids := range p.Held {
		holds := shares{}
		for _, id := range ids {
			if !holds.add(id) {
				all.held[id] = append(all.held[id], resource)
			}
		}
		all.holds[resource] = holds
	}
	for _, resources := range all.held {
		slices.Sort(resources)
	}
	return all
}

// recall gives a unit its past. Where a device was announced as several resources, it is at
// home in the one that it has not left.
func (p *past) recall(u *unit) {
	u.remember(p.facts[u.id])
	u.held = p.held[u.id]
	for _, a := range p.at[u.id] {
		if a.device.Function.Vendor != u.f.Vendor || a.device.Function.Device != u.f.Device {
			continue // another board sits in the slot now
		}
		if u.was == nil || u.was.Left && !a.device.Left || u.was.Left == a.device.Left && a.device.Present && !u.was.Present {
			u.was, u.home = a.device, a.resource
		}
	}
}

const separator = "::"

// shareID is the ID of a share of an RDMA device.
func shareID(a pci.Address, n int) string { return a.String() + separator + strconv.Itoa(n) }

// shares are numbers of shares, by the address of their device.
type shares map[string]map[int]bool

// add adds a share by its ID. It reports false for what is no share.
func (s shares) add(id string) bool {
	address, number, ok := strings.Cut(id, separator)
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 || strconv.Itoa(n) != number {
		return false
	}
	if s[address] == nil {
		s[address] = map[int]bool{}
	}
	s[address][n] = true
	return true
}

// of are the shares of one device.
func (s shares) of(a pci.Address) map[int]bool { return s[a.String()] }
