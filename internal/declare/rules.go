package declare

import (
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
)

// Rules decide which facts become which resource. A program has one of the two kinds: the
// passthrough table, or pools from a configuration file. Rules are immutable; a new
// configuration makes new ones.
type Rules interface {
	// Names are the resources that may be declared, whether they have devices or not.
	Names() []Name
	// Declare applies the rules to a snapshot. It is pure: what it has to remember is in past.
	Declare(s *host.Snapshot, past Past) Declaration
	// Again is a declared device as its function, read anew, makes it: what it would be if
	// the node was looked at now.
	Again(f *host.Function, was *Device, resource string) Device
	// Environment are the variables that tell a container of its devices of a resource.
	Environment(resource string, devices []*Device) map[string]string
}

// Name is a resource with the beginning of its sockets' names.
type Name struct {
	// Resource is the extended resource name, and the kind of the CDI devices.
	Resource string
	// Socket begins the names of the resource's sockets in kubelet's directory. No two
	// resources of one node have the same.
	Socket string
}

// Past is what a declaration may have to know of the time before.
type Past struct {
	// Announced are the resources as they were announced last by this process.
	Announced []Resource
	// Held are the devices of each resource that containers have, by kubelet's record. It is
	// nil when that could not be read, and it may be behind the times: an entry goes only
	// when kubelet allocates the next device.
	Held map[string][]string
}

// Node is a character device as a container gets it.
type Node struct {
	// Path is its place in the container, and on the host unless Host says otherwise.
	Path string
	// Host is the place on the host, "" for Path.
	Host string
	// Permissions are what the container may do with it: of r, w and m.
	Permissions string
	// Owner is the address of the function whose node it is, where it is that of another
	// device than the one that it comes with.
	Owner string
}

// OnHost is the node's place on the host.
func (n Node) OnHost() string {
	if n.Host != "" {
		return n.Host
	}
	return n.Path
}

// Device is one schedulable unit of a resource.
type Device struct {
	// ID is the PCI address, the name of an auxiliary device, or the address and a number for
	// a share. It is the same string in kubelet, in CDI and on the terminal, and names the
	// same hardware for as long as that is in its slot.
	ID string
	// Function holds the facts of the last look at which the device was there: of the
	// function that it is, or is on.
	Function host.Function
	// Present says whether the device is there now. What is not present is in no CDI spec.
	Present bool
	// Nodes are the device's own. They are in the CDI spec, under ID.
	Nodes []Node
	// With are nodes that come with the device and belong to none alone, such as
	// /dev/vfio/vfio. They are in the answer to Allocate only.
	With []Node
	// About is what a container is told of the device beyond its ID: for each source of
	// facts, names and values. nil is for nothing.
	About map[string]map[string]string
	// Left says that the device is of the resource no more. It is announced, since it was.
	Left bool
	// NoTopology keeps the NUMA node from kubelet.
	NoTopology bool
	// Faults are the reasons why the device must not be handed out. A device without
	// any is healthy.
	Faults []finding.Finding
}

// Healthy says whether the device may be handed out.
func (d *Device) Healthy() bool { return len(d.Faults) == 0 }

// String says where the device is on the host: its nodes, or its address where it has none.
func (d *Device) String() string {
	if len(d.Nodes) == 0 {
		return d.Function.Address.String()
	}
	all := make([]string, len(d.Nodes))
	for i, n := range d.Nodes {
		all[i] = n.OnHost()
	}
	return strings.Join(all, " ")
}

// Resource is an extended resource with its devices, sorted by address and ID.
type Resource struct {
	Name    string
	Devices []Device
}

// Declaration is everything that a snapshot amounts to.
type Declaration struct {
	// Resources are those that have a device, in the order of the rules.
	Resources []Resource
	// Findings are the reasons why functions and entries are not declared, and what
	// else the look met. The faults of declared devices are with the devices.
	Findings []finding.Finding
	// Others are functions that are of no resource, by address, with the fact that says so.
	Others map[string]finding.Evidence
	// Snapshot is what tells whether a device that is of a resource no more is there all the
	// same: containers that have it may be started again, and need its nodes. It is nil where
	// a device that is not declared is none.
	Snapshot *host.Snapshot
}
