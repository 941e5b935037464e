package nodestate

import (
	"time"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/podresources"
)

// Source names where facts come from.
type Source string

// The sources.
const (
	Hardware    Source = "hardware"
	NICRules    Source = "nic_rules"
	Pods        Source = "pod_resources"
	Allocatable Source = "allocatable"
	PodUIDs     Source = "pods_api"
	Record      Source = "checkpoint"
	Sockets     Source = "plugin_sockets"
	Specs       Source = "cdi_specs"
	Claims      Source = "claim_records"
	Locks       Source = "locks"
)

// Sources are all sources, always in the same order.
func Sources() []Source {
	return []Source{Hardware, NICRules, Pods, Allocatable, PodUIDs, Record, Sockets, Specs, Claims, Locks}
}

// Reading is what a source said last.
type Reading[T any] struct {
	// Value is what it said when it last answered, which was At. The zero time stands for never.
	Value T
	At    time.Time
	// Err is why it did not answer the last time that it was asked, nil when it did.
	Err error
	// None says that the node has no such source, which is an answer too.
	None bool
}

// Took notes an answer. After an error what was known stays as it is, and grows old.
func (r *Reading[T]) Took(value T, err error, at time.Time) {
	r.Err = err
	if err == nil {
		r.Value, r.At, r.None = value, at, false
	}
}

// TookPart notes what was said where a part could not be read. What was said is as new as any, and err, which is told,
// says what is missing. It is nil where nothing is.
func (r *Reading[T]) TookPart(value T, err error, at time.Time) {
	*r = Reading[T]{Value: value, Err: err, At: at}
}

// Absent notes that there is no such source.
func (r *Reading[T]) Absent(at time.Time) { *r = Reading[T]{At: at, None: true} }

// state is the reading without what was said. That there is no such source was the last answer; once
// asking for it fails nobody knows whether there still is none.
func (r *Reading[T]) state(s Source) SourceState {
	return SourceState{Source: s, At: r.At, Err: r.Err, None: r.None && r.Err == nil}
}

// Facts are what all sources of a node said last.
type Facts struct {
	Hardware Reading[*host.Snapshot]
	// Rules are those of the programs that may declare devices on the node. What a configuration
	// declares is missing where NICRules has not been read.
	Rules    []declare.Rules
	NICRules Reading[int] // the number of pools

	Pods        Reading[[]podresources.Pod]
	Allocatable Reading[[]podresources.Device]
	PodUIDs     Reading[[]PodUID]

	Record  Reading[KubeletRecord]
	Sockets Reading[[]Socket]
	Specs   Reading[[]Spec]
	Claims  Reading[ClaimRecords]
	Locks   Reading[[]Lock]
}

// sources are the states of all sources.
func (f *Facts) sources() []SourceState {
	return []SourceState{
		f.Hardware.state(Hardware), f.NICRules.state(NICRules), f.Pods.state(Pods), f.Allocatable.state(Allocatable),
		f.PodUIDs.state(PodUIDs), f.Record.state(Record), f.Sockets.state(Sockets), f.Specs.state(Specs),
		f.Claims.state(Claims), f.Locks.state(Locks),
	}
}

// PodUID is a pod as kubelet's Pods API names it.
type PodUID struct {
	Namespace, Name, UID string
	// Ended is for a pod whose object is still there. kubelet gives to others what it had.
	Ended bool
}

// KubeletRecord is kubelet's checkpoint of device plugins.
type KubeletRecord struct {
	// Registered are the healthy devices by resource. A resource without any is there too.
	Registered map[string][]string
	Given      []Given
}

// Given is a device that a container was given. kubelet keeps the entries of pods that have ended
// until it allocates again.
type Given struct{ UID, Container, Resource, ID string }

// Socket is one in the directory of device plugins.
type Socket struct {
	Name string
	// Listens says whether somebody answers there. Unknown is for sockets of others, which are
	// not connected to, and where that could not be tried.
	Listens Answer
}

// Spec is a CDI spec file.
type Spec struct {
	// Kind is that of the devices: empty where it is not known.
	Path, Kind string
	// Rank is that of its directory: what several name is that of the one with the highest rank.
	Rank int
	// Devices are the nodes on the host by the name of the device: nil where they were not read.
	// One that was not examined may have any name of its kind.
	Devices map[string][]string
	State   SpecState
	// Stale are devices with a node that is not the host's any more, as far as that is known.
	Stale map[string]bool
	// Private says that others than its owner cannot read the file, as some consumers have to.
	Private bool
}

// ClaimRecords are the records of the DRA driver.
type ClaimRecords struct {
	Records []ClaimRecord
	Damaged int // files that cannot be trusted
}

// ClaimRecord is a claim that holds hardware.
type ClaimRecord struct {
	UID, Namespace, Name, State string
	Devices                     []ClaimDevice
}

// ClaimDevice is a device of a claim.
type ClaimDevice struct {
	Pool, Name, Address string
	Group, Requests     []string
	Admin               bool
	CDI                 []string
}

// Lock is the node's lock of a resource, by which one agent keeps others from offering it.
type Lock struct {
	Resource string
	Owner    Owner
}
