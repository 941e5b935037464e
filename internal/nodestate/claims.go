package nodestate

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/host"
)

// preparing is the state of a claim that has no spec yet.
const preparing = "Preparing"

// claims counts the records of claims, and judges the CDI names that are in them.
func (j *join) claims(enter func(kind string, state CDIState)) {
	if !j.fresh[Claims] || j.facts.Claims.None {
		return
	}
	nodes := j.vfioNodes()
	for _, r := range j.facts.Claims.Value.Records {
		for i := range r.Devices {
			for _, name := range r.Devices[i].CDI {
				kind, device, ok := strings.Cut(name, "=")
				if !ok || kind != draname.ClaimKind {
					continue
				}
				state := j.name(kind, device, nil)
				if state == CDIResolvable && nodes.stale(&r.Devices[i], j.specs[unitKey{kind, device}][0].Devices[device]) {
					state = CDIStale
				}
				if state != CDIMissing || r.State != preparing {
					enter(kind, state)
				}
			}
		}
	}
}

// vfioNodes are the nodes of VFIO that functions have now, by address: nil for one of which that is not known.
type vfioNodes map[string][]string

// vfioDir is where the nodes are: of IOMMU groups, and below it of functions.
const vfioDir = "/dev/vfio/"

// vfioNodes is nil while the hardware is not known.
func (j *join) vfioNodes() vfioNodes {
	if !j.fresh[Hardware] {
		return nil
	}
	all := vfioNodes{}
	for i := range j.facts.Hardware.Value.Functions {
		f := &j.facts.Hardware.Value.Functions[i]
		if !f.Known {
			all[f.Address.String()] = nil
			continue
		}
		nodes := []string{}
		if f.Cdev != nil {
			nodes = append(nodes, host.DevicesDir+"/"+f.Cdev.Name)
			if f.Group != nil {
				nodes = append(nodes, vfioDir+f.Group.Number)
			}
		}
		all[f.Address.String()] = nodes
	}
	return all
}

// stale says whether a spec has a node of VFIO for a claim's device that none of its functions has. A number of VFIO's
// goes to the next function that is bound.
func (v vfioNodes) stale(d *ClaimDevice, has []string) bool {
	if v == nil || d.Address == "" {
		return false
	}
	var own []string
	for _, a := range append([]string{d.Address}, d.Group...) {
		nodes, there := v[a]
		if there && nodes == nil {
			return false
		}
		own = append(own, nodes...)
	}
	return slices.ContainsFunc(has, func(n string) bool { return strings.HasPrefix(n, vfioDir) && !slices.Contains(own, n) })
}

// countClaims counts claims by their state.
func (j *join) countClaims() {
	if !j.fresh[Claims] || j.facts.Claims.None {
		return
	}
	j.s.Claims = map[string]int{Damaged: j.facts.Claims.Value.Damaged}
	for _, r := range j.facts.Claims.Value.Records {
		j.s.Claims[r.State]++
	}
}

// Damaged is the state of a claim whose record cannot be trusted.
const Damaged = "Damaged"

// ClaimStates are all states of claims: those of package claim, and Damaged.
func ClaimStates() []string { return []string{Damaged, preparing, "Prepared", "Unpreparing"} }
