package inventory

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// Input is what an inventory says beyond the snapshot. All of it may be left out.
type Input struct {
	// Node is the node's name.
	Node string
	// NICs are the rules of nic-device-plugin, those of package nic. nil says that its
	// configuration is not known: network controllers are none of ours then.
	NICs declare.Rules
	// Name names a product by its numbers, "" for one that it does not know.
	Name func(vendor, device pci.ID) string
	// Past is what each set of rules is told of the time before, in their order: the table of passthrough devices, and
	// NICs. Without it they are told of Holders alone.
	Past []declare.Past
	// Holders are who has a device, by its ID. nil says that nobody knows; an empty map that
	// nobody has any.
	Holders map[string][]Holder
	// CDI is what is on disk for a device, by its ID. nil says that nobody knows. A device that
	// nobody offers needs nothing there, and has no entry.
	CDI map[string]CDI
	// Because says why a source is not known.
	Because map[Unknown]string
}

// Holder is who has a device: a container by a device plugin, or by a claim.
type Holder struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Container string `json:"container,omitempty"`
	// Resource is the one that the container asked for, of a device plugin.
	Resource string `json:"resource,omitempty"`
	// Claim is the ResourceClaim, of a DRA driver.
	Claim string `json:"claim,omitempty"`
	// Admin is for a claim that looks at the device and does not hold it (adminAccess).
	Admin bool `json:"adminAccess,omitempty"`
}

// String is namespace/pod/container, and the claim where there is one.
func (h Holder) String() string {
	s := h.Namespace + "/" + h.Pod
	if h.Container != "" {
		s += "/" + h.Container
	}
	if h.Claim != "" {
		s += " by claim " + h.Claim
	}
	if h.Admin {
		s += " (only looks: admin access)"
	}
	return s
}

// CDI is whether a device can be resolved by its CDI name.
type CDI struct {
	// Name is the qualified name, nvidia.com/gpu=0000:41:00.0.
	Name  string   `json:"name"`
	State CDIState `json:"state"`
	// Spec is the file that has the device, or that should.
	Spec string `json:"spec,omitempty"`
}

// CDIState says what a CDI name resolves to.
type CDIState string

// The states of a CDI name.
const (
	CDIResolves   CDIState = "Resolves"    // to the nodes that the device has
	CDIMissing    CDIState = "Missing"     // no spec has the name
	CDIDiffers    CDIState = "Stale"       // to other nodes than the device has now
	CDIConflicts  CDIState = "Conflicting" // several specs have the name, so it resolves to nothing
	CDIUnreadable CDIState = "Unreadable"  // its spec is not readable for all who have to
	CDIUnexamined CDIState = "Unknown"     // a spec that was not read may have the name
)

// Word is the state in a word.
func (s CDIState) Word() string {
	if s == CDIResolves {
		return "ok"
	}
	return strings.ToLower(string(s))
}

// past is what a set of rules has to know of the time before: whose device it is that cannot be
// seen, since a container has it.
func (in Input) past(rules int) declare.Past {
	if rules < len(in.Past) {
		return in.Past[rules]
	}
	if in.Holders == nil {
		return declare.Past{}
	}
	held := map[string][]string{}
	for id, holders := range in.Holders {
		for _, h := range holders {
			if h.Resource != "" && !slices.Contains(held[h.Resource], id) {
				held[h.Resource] = append(held[h.Resource], id)
			}
		}
	}
	for _, ids := range held {
		slices.Sort(ids)
	}
	return declare.Past{Held: held}
}

// because is why sources are not known, of those that are not.
func (in Input) because(lacks []Unknown) map[Unknown]string {
	var all map[Unknown]string
	for _, u := range lacks {
		if why := in.Because[u]; why != "" {
			if all == nil {
				all = map[Unknown]string{}
			}
			all[u] = why
		}
	}
	return all
}

// unknown are the sources that were left out. Which interfaces the host uses matters to the
// rules of NICs only, which take what the snapshot does not say for "none".
func (in Input) unknown(s *host.Snapshot) []Unknown {
	var all []Unknown
	if in.CDI == nil {
		all = append(all, UnknownCDI)
	}
	if in.Holders == nil {
		all = append(all, UnknownHolders)
	}
	if in.NICs != nil && s.Links == nil {
		all = append(all, UnknownLinks)
	}
	if in.NICs == nil {
		all = append(all, UnknownRules)
	}
	return all
}

// holders are those of one device as one resource, in a stable order.
func (in Input) holders(id, resource string) []Holder {
	var all []Holder
	for _, h := range in.Holders[id] {
		if h.of(resource) {
			all = append(all, h)
		}
	}
	sortHolders(all)
	return all
}

// of says whether a holder of an ID has it as the device of a resource: a claim has whatever has the ID.
func (h Holder) of(resource string) bool { return h.Resource == "" || h.Resource == resource }

func sortHolders(all []Holder) {
	slices.SortFunc(all, func(a, b Holder) int {
		return strings.Compare(a.String()+"\x00"+a.Resource, b.String()+"\x00"+b.Resource)
	})
}
