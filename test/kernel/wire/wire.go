// Package wire is what the guest and the host say to each other: lines of JSON over a virtio port.
package wire

import (
	"encoding/json"
	"time"

	"kata-device-plugin/test/kernel/facts"
)

// Port is the name of the virtio port.
const Port = "kata-lab"

// Orders are the first thing that the host says.
type Orders struct {
	// Scenarios are to be run, in this order.
	Scenarios []string `json:"scenarios"`
	// Devices are the functions that pose as NVIDIA's.
	Devices []Device `json:"devices"`
	// Options are of modules: what would stand on the kernel's command line for modprobe to read.
	Options map[string]string `json:"options"`
}

// Device is a function that the plugin has to declare once it is bound to vfio-pci.
type Device struct {
	ID       string `json:"id"`
	Resource string `json:"resource"`
	NUMA     int64  `json:"numa"`
	// Role is empty for those that are bound from the start. The others are for scenarios that
	// know them by it.
	Role string `json:"role,omitempty"`
}

// The roles.
const (
	Hot     = "hot"     // can be unplugged; on no NUMA node
	Shared  = "shared"  // shares its IOMMU group with Neighbour
	Display = "display" // a function with Audio beside it
	PF      = "PF"      // has virtual functions; on no NUMA node
	// Functions that no rule of the product wants:
	Neighbour = "neighbour" // a device of the host's
	Audio     = "audio"
)

// The kinds of lines that the guest sends.
const (
	Result = "result" // a scenario has ended
	Log    = "log"    // the plugin has logged a line
	Table  = "table"  // what the product reads, at one moment
	QMP    = "qmp"    // a command for QEMU, which the host answers with an Answer
	Done   = "done"   // nothing more comes
)

// Line is what the guest sends.
type Line struct {
	Kind string `json:"kind"`
	// Name is the scenario's or the table's.
	Name string `json:"name,omitempty"`
	// Errors are what was wrong with a scenario.
	Errors []string      `json:"errors,omitempty"`
	Took   time.Duration `json:"took,omitempty"`
	// Notes are what a scenario measured or saw, for a person.
	Notes []string `json:"notes,omitempty"`
	// Text is a line of the log.
	Text string `json:"text,omitempty"`
	// Table has the facts, Steps what was done since the table before, and Events what a watcher was
	// told meanwhile.
	Table  facts.Table `json:"table,omitempty"`
	Steps  []Step      `json:"steps,omitempty"`
	Events []string    `json:"events,omitempty"`
	// Command is for QEMU's monitor.
	Command json.RawMessage `json:"command,omitempty"`
}

// Step is one change of the hardware's state, which the simulator can make as well.
type Step struct {
	Do      string `json:"do"`      // one of the words below
	Address string `json:"address"` // or the mediated device's UUID
	Driver  string `json:"driver,omitempty"`
	Count   int    `json:"count,omitempty"`
}

// What a step does.
const (
	Bind         = "bind"
	BindNoIOMMU  = "bind without IOMMU"
	Unbind       = "unbind"
	Hold         = "unbind while held"
	HoldRemoved  = "remove while held"
	Release      = "release"
	VFs          = "set VFs"
	Remove       = "remove"
	Add          = "add"
	AddMediated  = "add mediated"
	LoseMediated = "remove mediated"
)

// Answer is the host's reply to a QMP command.
type Answer struct {
	Return json.RawMessage `json:"return,omitempty"`
	Error  string          `json:"error,omitempty"`
}
