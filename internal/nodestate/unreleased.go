package nodestate

import (
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/podresources"
)

// unreleased enters what is held for no pod that lives. kubelet's record keeps the entries of pods
// that have ended, until it allocates again: so each has to be seen for a while before it counts.
func (j *join) unreleased() {
	j.countClaims()
	if j.fresh[Pods] && j.fresh[Record] && j.fresh[PodUIDs] {
		j.leftInRecord()
	} else {
		j.remember(string(Record))
	}
	if j.fresh[Pods] && j.fresh[Claims] {
		j.leftClaims()
	} else {
		j.remember(string(Claims))
	}
	j.s.UnreadClaims = slices.ContainsFunc(j.unexamined, func(s *Spec) bool {
		return (s.Kind == "" || s.Kind == draname.ClaimKind) && len(s.claims()) == 0
	})
	if j.fresh[Pods] && j.fresh[Claims] && j.fresh[Specs] && !j.s.UnreadClaims {
		j.leftSpecs()
	} else {
		j.remember(string(Specs))
	}
	slices.SortFunc(j.s.Unreleased, func(a, b Unreleased) int {
		return strings.Compare(string(a.Where)+" "+a.What, string(b.Where)+" "+b.What)
	})
}

// left enters one thing that is held for nobody.
func (j *join) left(where Source, what string) {
	if since, long := j.lasting(string(where) + " " + what); long {
		j.s.Unreleased = append(j.s.Unreleased, Unreleased{Where: where, What: what, Since: since})
	}
}

// leftInRecord finds the entries of kubelet's record that are no living pod's. An entry may be that
// of an init container, which kubelet names to nobody.
func (j *join) leftInRecord() {
	for key, given := range j.given {
		if _, ours := j.address(key.resource, key.id); !ours {
			continue
		}
		for _, g := range given {
			if !j.living()[g.UID] {
				j.left(Record, strings.Join([]string{g.Resource, g.ID, g.UID, g.Container}, " "))
			}
		}
	}
}

// leftClaims finds the records of claims that no pod has: none names it, or the one that does has another claim, which was
// made anew under the name.
func (j *join) leftClaims() {
	named, uids := map[string]bool{}, map[string][]string{}
	for i := range j.facts.Pods.Value {
		p := &j.facts.Pods.Value[i]
		for k := range p.Containers {
			for _, c := range p.Containers[k].Claims {
				name := c.Namespace + "/" + c.Name
				named[name] = true
				uids[name] = append(uids[name], claimUIDs(c)...)
			}
		}
	}
	for _, r := range j.facts.Claims.Value.Records {
		name := r.Namespace + "/" + r.Name
		if !named[name] || len(uids[name]) > 0 && !slices.Contains(uids[name], r.UID) {
			j.left(Claims, r.UID)
		}
	}
}

// leftSpecs finds the specs of claims that have no record and that no pod uses.
func (j *join) leftSpecs() {
	used := j.usedClaims()
	for i := range j.facts.Specs.Value {
		spec := &j.facts.Specs.Value[i]
		of := spec.claims()
		if len(of) > 0 && !slices.ContainsFunc(of, func(uid string) bool { return used[uid] }) {
			j.left(Specs, spec.Path)
		}
	}
}

// usedClaims are the UIDs of claims that have a record or that a pod uses.
func (j *join) usedClaims() map[string]bool {
	used := map[string]bool{}
	for i := range j.facts.Pods.Value {
		p := &j.facts.Pods.Value[i]
		for k := range p.Containers {
			for _, c := range p.Containers[k].Claims {
				for _, uid := range claimUIDs(c) {
					used[uid] = true
				}
			}
		}
	}
	for _, r := range j.facts.Claims.Value.Records {
		used[r.UID] = true
	}
	return used
}

// claimUIDs are the UIDs that kubelet tells of a claim: they are in the names of its CDI devices, and nowhere else. There
// are none where those are not the driver's.
func claimUIDs(c podresources.Claim) []string {
	var all []string
	for _, d := range c.Devices {
		for _, name := range d.CDI {
			if device, ours := strings.CutPrefix(name, draname.ClaimKind+"="); ours {
				if uid, _, ok := draname.Parse(device); ok && uid != "" && !slices.Contains(all, uid) {
					all = append(all, uid)
				}
			}
		}
	}
	return all
}

// claims are the UIDs of the claims that a spec is of, none for one of no claim. The driver has the UID in the
// name of the file: so it is known of a spec too that is torn, or cannot be read.
func (s *Spec) claims() []string {
	if uid, ok := draname.SpecClaim(path.Base(s.Path)); ok {
		return []string{uid}
	}
	if s.Kind != draname.ClaimKind {
		return nil
	}
	var all []string
	for device := range s.Devices {
		if uid, _, ok := draname.Parse(device); ok {
			all = append(all, uid)
		}
	}
	return all
}
