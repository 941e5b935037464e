// Package nodeview joins what one look at a node shows, for people: who has which device, and
// whether CDI resolves it. The node may be this one or a captured one. It is the same join as the
// exporter's, which goes on looking; here there is one moment, and no time before it.
package nodeview

import (
	"errors"
	"io/fs"
	"time"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/podresources"
)

// Kubelet is what kubelet said about devices, or why it said nothing.
type Kubelet struct {
	Pods    []podresources.Pod
	PodsErr error
	// Allocatable are the devices that plugins offer.
	Allocatable    []podresources.Device
	AllocatableErr error
}

// Silent is a kubelet of which nothing is known.
func Silent(why error) Kubelet { return Kubelet{PodsErr: why, AllocatableErr: why} }

// Sources are where a view looks.
type Sources struct {
	// Hardware is nil where only kubelet is asked.
	Hardware *host.Snapshot
	// NICs are the rules of nic-device-plugin, nil where they are not known.
	NICs declare.Rules
	// Files are those of the node, from its root: its CDI specs are there. nil where they are not known.
	Files fs.FS
	// Dev is its /dev, with which the nodes of CDI specs are compared; nil where that is not known.
	Dev     host.DevFS
	Kubelet Kubelet
}

var errNoFiles = errors.New("the node's files are not in the input")

// Join joins what the sources say.
func Join(in Sources) *nodestate.State {
	now := time.Unix(0, 0).UTC() // no answer is older than another
	f := &nodestate.Facts{Rules: []declare.Rules{declare.Passthrough()}}
	f.NICRules.Absent(now)
	if in.NICs != nil {
		f.Rules = append(f.Rules, in.NICs)
		f.NICRules.Took(0, nil, now)
	}
	if in.Hardware != nil {
		f.Hardware.Took(in.Hardware, nil, now)
	}
	f.Pods.Took(in.Kubelet.Pods, in.Kubelet.PodsErr, now)
	f.Allocatable.Took(in.Kubelet.Allocatable, in.Kubelet.AllocatableErr, now)
	if in.Files == nil {
		f.Specs.Took(nil, errNoFiles, now)
	} else {
		specs, err := readSpecs(in.Files, in.Dev)
		f.Specs.Took(specs, err, now)
	}
	return nodestate.Join(f, nil, now, nodestate.Options{})
}

// Add puts what a state knows into what an inventory is made of. What is older than bound is not known.
func Add(to *inventory.Input, s *nodestate.State, bound time.Duration) {
	to.Because, to.Past = map[inventory.Unknown]string{}, s.Past
	if of := s.Source(nodestate.Pods); of.Fresh(s.At, bound) {
		to.Holders = holders(s)
	} else {
		to.Because[inventory.UnknownHolders] = because(of)
	}
	if of := s.Source(nodestate.Specs); of.Fresh(s.At, bound) {
		to.CDI = names(s)
	} else {
		to.Because[inventory.UnknownCDI] = because(of)
	}
}

func because(of nodestate.SourceState) string {
	switch {
	case of.Err != nil:
		return of.Err.Error()
	case of.At.IsZero():
		return "nobody was asked"
	}
	return "what is known of it is too old"
}

// holders are who has a device, by its ID. Of a device of a claim that is its address, which is the
// ID that a plugin gives it.
func holders(s *nodestate.State) map[string][]inventory.Holder {
	all := map[string][]inventory.Holder{}
	for i := range s.Allocations {
		a := &s.Allocations[i]
		id := a.Device
		if a.By == nodestate.ByDRA {
			id = a.Address.String()
		}
		all[id] = append(all[id], Holder(a))
	}
	return all
}

// Holder is who has an allocation.
func Holder(a *nodestate.Allocation) inventory.Holder {
	return inventory.Holder{
		Namespace: a.Namespace, Pod: a.Pod, Container: a.Container, Resource: a.Resource, Claim: a.Claim, Admin: a.Admin == nodestate.Yes,
	}
}

// names are what the CDI names of devices come to, by ID. A device that nobody offers needs none.
func names(s *nodestate.State) map[string]inventory.CDI {
	all := map[string]inventory.CDI{}
	for i := range s.Units {
		u := &s.Units[i]
		state, ok := map[nodestate.CDIState]inventory.CDIState{
			nodestate.CDIResolvable: inventory.CDIResolves, nodestate.CDIMissing: inventory.CDIMissing, nodestate.CDIStale: inventory.CDIDiffers,
			nodestate.CDIConflicting: inventory.CDIConflicts, nodestate.CDIUnreadable: inventory.CDIUnreadable,
			nodestate.CDIUnknown: inventory.CDIUnexamined,
		}[u.CDI]
		if ok {
			all[u.ID] = inventory.CDI{Name: u.Resource + "=" + u.ID, State: state}
		}
	}
	return all
}
