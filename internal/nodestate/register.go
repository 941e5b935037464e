package nodestate

import "strings"

// register enters how kubelet knows the resources of the rules. One of which the node has no
// device, and kubelet knows nothing, is not among them; nor is one that the DRA driver has.
func (j *join) register() {
	seen := map[string]bool{} // a configuration may have a name that is in the table too
	for _, rules := range j.facts.Rules {
		for _, name := range rules.Names() {
			if seen[name.Resource] {
				continue
			}
			seen[name.Resource] = true
			_, recorded := j.facts.Record.Value.Registered[name.Resource]
			recorded = recorded && j.fresh[Record]
			count, declared := j.resources[name.Resource]
			if !recorded && (!declared || count.Healthy+count.Unhealthy == 0) || j.owner(name.Resource) == DRADriver {
				continue
			}
			r := Registration{Resource: name.Resource, Listening: -1, Dead: -1}
			if j.fresh[Record] && (recorded || j.fresh[Locks]) { // else it may be the DRA driver's, of which kubelet knows nothing
				r.Registered = is(recorded)
			}
			if j.fresh[Sockets] {
				r.Listening, r.Dead = j.sockets(name.Socket)
			}
			j.s.Registrations = append(j.s.Registrations, r)
		}
	}
}

func (j *join) owner(resource string) Owner {
	if j.fresh[Locks] {
		for _, l := range j.facts.Locks.Value {
			if l.Resource == resource {
				return l.Owner
			}
		}
	}
	return ""
}

// sockets counts those of a resource's plugin. As long as it is not known of one whether somebody listens
// there, the numbers are not either.
func (j *join) sockets(prefix string) (listening, dead int) {
	for _, s := range j.facts.Sockets.Value {
		if !OwnSocket(s.Name, prefix) {
			continue
		}
		switch s.Listens {
		case Yes:
			listening++
		case No:
			dead++
		case Unknown:
			return -1, -1
		}
	}
	return listening, dead
}

// OwnSocket says whether a socket is one of the plugin whose sockets begin so: behind that, each
// start of it puts eight digits of its own.
func OwnSocket(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix+"-")
	rest, socket := strings.CutSuffix(rest, ".sock")
	return ok && socket && len(rest) == 8 && strings.Trim(rest, "0123456789abcdef") == ""
}
