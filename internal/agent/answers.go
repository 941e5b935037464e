package agent

import (
	"slices"
	"sync"
	"time"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/declare"
)

// answers are the grants that were made while a look was under way.
//
// A look reads one file after the other, and an answer reads the few of its devices anew. A
// device that comes back when the look has passed it by, and is granted before the look has
// ended, is missing in what the look found: that is older than the answer, and to act on it
// would take the device from the CDI spec just when the runtime asks for it.
type answers struct {
	mu    sync.Mutex
	given map[string][]declare.Node // by resource and ID, the nodes
	// recent are grants that kubelet's record need not have yet, with their times.
	recent map[grantee]time.Time
}

// grantee is a device of a resource that was granted.
type grantee struct{ resource, device string }

// forget is called when a look begins.
func (a *answers) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.given = map[string][]declare.Node{}
}

// add notes what is granted. The caller holds the announcement still, so that no look can be
// applied before the note is made.
func (a *answers) add(resource string, devices []*declare.Device) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.given == nil {
		a.given = map[string][]declare.Node{}
	}
	if a.recent == nil {
		a.recent = map[grantee]time.Time{}
	}
	for _, d := range devices {
		a.given[cdi.QualifiedName(resource, d.ID)] = d.Nodes
		a.recent[grantee{resource, d.ID}] = time.Now()
	}
}

// deniedBy says whether a declaration lacks something that was granted, or has it with
// other nodes.
func (a *answers) deniedBy(resources []declare.Resource) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := 0
	for _, r := range resources {
		for i := range r.Devices {
			d := &r.Devices[i]
			if nodes, granted := a.given[cdi.QualifiedName(r.Name, d.ID)]; granted && d.Present && slices.Equal(nodes, d.Nodes) {
				kept++
			}
		}
	}
	return kept < len(a.given)
}
