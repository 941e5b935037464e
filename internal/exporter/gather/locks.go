package gather

import (
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/nodelock"
	"kata-device-plugin/internal/nodestate"
)

// readLocks says who has the node's locks of the resources. A resource of the NIC plugin has two:
// its own, and that of all NICs, which the DRA driver takes.
func readLocks(dir string, table declare.Table, names []declare.Name) ([]nodestate.Lock, error) {
	if err := removed(dir); err != nil {
		return nil, err
	}
	nics, err := lockOwner(dir, nodelock.NICs)
	if err != nil {
		return nil, err
	}
	var all []nodestate.Lock
	for i, n := range names {
		owner, err := lockOwner(dir, n.Resource)
		if err != nil {
			return nil, err
		}
		if owner == nodestate.Nobody && i >= len(table.Names()) {
			owner = nics
		}
		all = append(all, nodestate.Lock{Resource: n.Resource, Owner: owner})
	}
	return all, nil
}

// left are the resources whose lock nobody has: their plugin has gone, if there was one.
func left(locks []nodestate.Lock) map[string]bool {
	all := map[string]bool{}
	for _, l := range locks {
		all[l.Resource] = l.Owner == nodestate.Nobody
	}
	return all
}

// lockOwner says who has a lock, without taking it.
func lockOwner(dir, resource string) (nodestate.Owner, error) {
	state, err := nodelock.Peek(dir, resource)
	if err != nil {
		return "", err
	}
	switch state {
	case nodelock.Alone:
		return nodestate.DevicePlugin, nil
	case nodelock.Shared:
		return nodestate.DRADriver, nil
	default:
		return nodestate.Nobody, nil
	}
}
