package nodestate

import (
	"slices"

	"kata-device-plugin/internal/podresources"
)

// uid is the UID of a pod, "" where it is not known. kubelet's answers about devices do not have
// it. Its Pods API does, but may know two pods of one name while one of them ends; its record does
// as well, for devices of plugins, but may still have a pod that has ended. Where two remain, or the two
// name different ones since one of them is older, it is ambiguous, and nobody guesses.
func (j *join) uid(p *podresources.Pod) string {
	var named []string
	if j.fresh[PodUIDs] {
		for _, of := range j.facts.PodUIDs.Value {
			if of.Namespace == p.Namespace && of.Name == p.Name {
				named = append(named, of.UID)
			}
		}
	}
	noted := j.noted(p)
	candidates := named
	switch {
	case len(named) == 0:
		candidates = noted
	case len(noted) > 0:
		candidates = slices.DeleteFunc(slices.Clone(named), func(uid string) bool { return !slices.Contains(noted, uid) })
	}
	switch {
	case len(candidates) == 1:
		j.s.UIDs.Resolved++
		return candidates[0]
	case len(named)+len(noted) == 0:
		j.s.UIDs.Unknown++
		return ""
	}
	j.s.UIDs.Ambiguous++
	return ""
}

// noted are the UIDs that kubelet's record has for all devices of a pod.
func (j *join) noted(p *podresources.Pod) []string {
	if !j.fresh[Record] {
		return nil
	}
	var all []string
	first := true
	for i := range p.Containers {
		c := &p.Containers[i]
		for _, d := range c.Devices {
			var uids []string
			for _, g := range j.given[unitKey{d.Resource, d.ID}] {
				if g.Container == c.Name && !slices.Contains(uids, g.UID) {
					uids = append(uids, g.UID)
				}
			}
			if first {
				all, first = uids, false
				continue
			}
			all = slices.DeleteFunc(all, func(uid string) bool { return !slices.Contains(uids, uid) })
		}
	}
	slices.Sort(all)
	return all
}
