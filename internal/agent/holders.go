package agent

import (
	"context"
	"maps"
	"slices"
	"time"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
)

// grace is how long a device counts as held after it was granted, whatever kubelet's record
// says: kubelet writes that when it has the answers for all devices of the container.
const grace = time.Minute

// askAgain is how soon kubelet is asked once more whether a device is free that only its
// being held keeps from being handed out. Nothing tells when a pod has ended.
const askAgain = 10 * time.Second

// readCheckpoint reads what kubelet believes.
func (a *Agent) readCheckpoint() {
	a.unread = a.checkpoint.Read()
	a.report.Once("kubelet's checkpoint", a.unread)
}

// holders are the devices that containers have, by resource: those of kubelet's record, and
// those that were granted just now. It is nil where nothing is known.
func (a *Agent) holders(now time.Time) map[string][]string {
	held := a.checkpoint.Held()
	if held == nil {
		return nil
	}
	return a.answers.join(held, now)
}

// tellGrant tells of devices that are about to be granted, and notes that they are.
func (a *Agent) tellGrant(o *offer, devices []*declare.Device) error {
	a.telling.Lock()
	defer a.telling.Unlock()
	if a.prog.Granted != nil {
		if err := a.prog.Granted(a.rules, o.resource, devices); err != nil {
			return err
		}
	}
	a.answers.add(o.resource, devices)
	return nil
}

// tellHolders tells who has which device, where somebody wants to know.
func (a *Agent) tellHolders(now time.Time) []finding.Finding {
	// A grant that came between would be told of before, and its holder not be known.
	a.telling.Lock()
	defer a.telling.Unlock()
	held := a.holders(now)
	if held == nil || a.prog.Holders == nil {
		return nil
	}
	if err := a.prog.Holders(a.rules, a.ledger(), held); err != nil {
		return []finding.Finding{finding.New(finding.InfoUnwritten(), "", finding.Evidence{Path: err.Error()})}
	}
	return nil
}

// declare applies rules to a snapshot. A device that seems to be another resource's in a
// container is asked for: kubelet's record keeps containers that have ended.
func (a *Agent) declare(ctx context.Context, rules declare.Rules, snapshot *host.Snapshot, now time.Time) declare.Declaration {
	past := declare.Past{Announced: a.ledger(), Held: a.holders(now)}
	declared := rules.Declare(snapshot, past)
	if a.prog.Holding == nil || !heldElsewhere(declared.Resources) {
		return declared.After(past.Announced)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	held, err := a.prog.Holding(ctx)
	a.report.Once("who has which device, by kubelet", err)
	if err == nil {
		past.Held = a.answers.join(held, now)
		declared = rules.Declare(snapshot, past)
	}
	return declared.After(past.Announced)
}

// heldElsewhere says whether a device is kept back because a container has it as something
// else.
func heldElsewhere(resources []declare.Resource) bool {
	for _, r := range resources {
		for i := range r.Devices {
			if slices.ContainsFunc(r.Devices[i].Faults, func(f finding.Finding) bool { return f.ID == finding.HeldAs().ID }) {
				return true
			}
		}
	}
	return false
}

// inherited are those devices of a spec of an earlier life that are declared no more, but that
// containers have, as far as their nodes are what they were: kubelet repeats the answer of
// that life when it starts such a container again.
func (a *Agent) inherited(resource string, devices []cdi.Device, now time.Time) []cdi.Device {
	held := a.holders(now)[resource]
	return slices.DeleteFunc(slices.Clone(devices), func(d cdi.Device) bool {
		if !slices.Contains(held, d.Name) {
			return true
		}
		nodes := a.snapshot.NodesOf(d.Name)
		return slices.ContainsFunc(d.Nodes, func(n cdi.Node) bool { return !slices.Contains(nodes, n.OnHost()) })
	})
}

// join adds what was granted and is in no record yet.
func (a *answers) join(held map[string][]string, now time.Time) map[string][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := maps.Clone(held)
	for key, at := range a.recent {
		if slices.Contains(held[key.resource], key.device) || now.Sub(at) > grace {
			delete(a.recent, key)
			continue
		}
		all[key.resource] = append(slices.Clip(all[key.resource]), key.device)
	}
	return all
}
