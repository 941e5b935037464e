// Package nodestate joins what the sources of one node say: what the hardware is and what the
// rules make of it, what kubelet offers and who has it, which claims there are, and what container
// runtimes could resolve. It is pure: facts go in, one state comes out. It reads nothing, and all
// that it has to remember is in the state before.
//
// What is not known is not "none". A source that has been silent for too long takes with it what
// rests on it.
package nodestate

import (
	"time"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// State is what a node is, at one moment. It is immutable.
type State struct {
	At        time.Time
	Sources   []SourceState
	Functions []Function // by address
	Units     []Unit     // by resource
	Resources []Resource // by name; of candidates that are of no resource, the name is None
	// Findings are what the rules say of the node, and of what is not declared.
	Findings    []finding.Finding
	Allocations []Allocation
	// Elsewhere are allocations of devices of which nobody knows where they are: of other plugins
	// and drivers, which call them otherwise.
	Elsewhere     []Allocation
	Idle          []Idle // what kubelet offers and no container has, by resource
	Unreleased    []Unreleased
	UnreadClaims  bool // a spec that was not read may be a claim's, which Unreleased lacks then
	Contests      []Contest
	Registrations []Registration
	Claims        map[string]int // by state
	Specs         map[SpecState]int
	Names         []Names // of CDI devices
	UIDs          UIDs
	// Past is what each set of rules was told of the time before: whoever judges the same facts with it comes to the
	// same units.
	Past []declare.Past

	declared []declaration        // what the rules have to know the next time
	since    map[string]time.Time // when what is not as it should be was first seen so
}

// None stands for a resource where there is none. A resource's name has a slash.
const None = "none"

// Answer is yes or no, or nobody knows.
type Answer uint8

// The answers.
const (
	Unknown Answer = iota
	No
	Yes
)

func is(b bool) Answer {
	if b {
		return Yes
	}
	return No
}

// SourceState is how a source is.
type SourceState struct {
	Source Source
	At     time.Time // of the last answer
	Err    error
	None   bool
}

// Fresh says whether the last answer is not older than bound.
func (s SourceState) Fresh(now time.Time, bound time.Duration) bool {
	return !s.At.IsZero() && now.Sub(s.At) <= bound
}

// Source is the state of a source.
func (s *State) Source(name Source) SourceState {
	for _, of := range s.Sources {
		if of.Source == name {
			return of
		}
	}
	return SourceState{Source: name}
}

// Function is a PCI function: one that a rule is about, that is bound to VFIO, or that is held.
type Function struct {
	Address pci.Address
	// Facts is nil for a function that is held and was not seen.
	Facts *host.Function
	Type  Type
	// Resources are those that it is declared as or offered as, sorted.
	Resources []string
	State     FunctionState
	// Reason is why it is not declared, or not healthy.
	Reason finding.Finding
}

// FunctionState is what became of a function.
type FunctionState string

// The states of a function.
const (
	Healthy   FunctionState = "healthy"
	Unhealthy FunctionState = "unhealthy"
	Excluded  FunctionState = "excluded" // a rule is about it, and it is no device
	Foreign   FunctionState = "foreign"  // no rule is about it
)

// Unit is one schedulable unit of a resource: a function, a subfunction, or a share.
type Unit struct {
	Resource, ID string
	Address      pci.Address
	Faults       []finding.Finding // none for a healthy one
	// Offered says whether kubelet has it as allocatable.
	Offered Answer
	CDI     CDIState
}

// Healthy says whether the unit may be handed out.
func (u *Unit) Healthy() bool { return len(u.Faults) == 0 }

// Resource is an extended resource. Discovered is always Excluded + Healthy + Unhealthy.
type Resource struct {
	Name                                     string
	Declared                                 bool // by a rule: only then there is something to count
	Discovered, Excluded, Healthy, Unhealthy int
	// Why are the numbers of units that are not healthy, by the ID of the first finding.
	WhyExcluded, WhyUnhealthy map[string]int
	// Offered are the units that kubelet has as allocatable, Allocated those that containers have,
	// and Free those of the first that are in Idle. They are -1 where that is not known.
	Offered, Allocated, Free int
	Owner                    Owner
}

// Owner says who may offer a resource on the node, by the node's lock.
type Owner string

// The owners. The empty one is for a lock that is not known.
const (
	Nobody       Owner = "nobody"
	DevicePlugin Owner = "device_plugin"
	DRADriver    Owner = "dra_driver"
)

// By is how a container got a device.
type By string

// The two ways.
const (
	ByDevicePlugin By = "device_plugin"
	ByDRA          By = "dra"
)

// Allocation is a device that a container has.
type Allocation struct {
	Address                   pci.Address
	Device                    string // the unit's ID, or the name in the pool
	By                        By
	Resource                  string // of a device plugin
	Namespace, Pod, Container string
	// Of a claim. Request is empty where nobody has noted it. Admin says whether it has access without
	// holding the device, as monitors ask for it (adminAccess).
	Driver, Pool, Claim, Request string
	Admin                        Answer
	// UID is the pod's, empty where it is not known.
	UID string
}

// Idle is a device that kubelet can still give.
type Idle struct {
	Resource, ID string
	// Address is that of its function, "" where nobody knows it.
	Address string
}

// Unreleased is what is still held for nobody.
type Unreleased struct {
	Where Source // Record, Claims or Specs
	What  string
	Since time.Time
}

// Contest is a resource that two have a hand in.
type Contest struct {
	Resource string
	Reason   ContestReason
	Devices  int
}

// ContestReason says how.
type ContestReason string

// The reasons.
const (
	// ForeignList: kubelet offers devices under a name of ours that our rules do not know.
	ForeignList ContestReason = "foreign_list"
	// TwoResources: a function is offered whole as two resources.
	TwoResources ContestReason = "two_resources"
	// TwoMechanisms: a claim holds a function that kubelet offers as a device plugin's.
	TwoMechanisms ContestReason = "two_mechanisms"
)

// Registration is how kubelet knows a resource of our rules.
type Registration struct {
	Resource   string
	Registered Answer // by kubelet's record
	// Listening and Dead are the sockets of the resource's plugin, -1 where that is not known.
	Listening, Dead int
}

// SpecState is how readers of CDI specs take a file.
type SpecState string

// The states of a spec file.
const (
	SpecValid      SpecState = "valid"
	SpecInvalid    SpecState = "invalid"    // it cannot be parsed
	SpecTooNew     SpecState = "too_new"    // for Kata's Go shim
	SpecUnexamined SpecState = "unexamined" // too large to be read here, or it cannot be read
)

// SpecStates are all states.
func SpecStates() []SpecState { return []SpecState{SpecInvalid, SpecTooNew, SpecUnexamined, SpecValid} }

// CDIState is what a device's CDI name comes to. It is empty where no name is expected, or that is
// not known.
type CDIState string

// The states of a CDI name.
const (
	CDIResolvable  CDIState = "resolvable"
	CDIMissing     CDIState = "missing"     // no spec has it
	CDIStale       CDIState = "stale"       // a spec has it with other nodes, or for a device that is no more
	CDIConflicting CDIState = "conflicting" // two specs have it, so it resolves to nothing
	CDIUnknown     CDIState = "unknown"     // a spec that was not read may have it
	CDIUnreadable  CDIState = "unreadable"  // its spec is not readable for all
)

// CDIStates are all states.
func CDIStates() []CDIState {
	return []CDIState{CDIConflicting, CDIMissing, CDIResolvable, CDIStale, CDIUnknown, CDIUnreadable}
}

// Names are the numbers of a kind's CDI names by their state.
type Names struct {
	Kind  string
	Count map[CDIState]int
}

// UIDs are how many pods with devices have a UID that is known.
type UIDs struct{ Resolved, Ambiguous, Unknown int }
