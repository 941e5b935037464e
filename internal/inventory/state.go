package inventory

import (
	"cmp"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// State is what became of a function.
type State string

// The states.
const (
	Healthy     State = "Healthy"     // declared, and may be handed out
	Unhealthy   State = "Unhealthy"   // declared, and a device of it must not be handed out
	NotDeclared State = "NotDeclared" // a candidate that is no device; a finding says why
	NotOurs     State = "NotOurs"     // no rule is about such a function; the evidence says what it is
)

// States are all states, in the order in which they are counted.
func States() []State { return []State{Healthy, Unhealthy, NotDeclared, NotOurs} }

// Word is the state in words.
func (s State) Word() string {
	switch s {
	case Healthy:
		return "healthy"
	case Unhealthy:
		return "unhealthy"
	case NotDeclared:
		return "not declared"
	case NotOurs:
		return "not ours"
	}
	return "unknown"
}

// Count is the number of functions in a state.
func (c Counts) Count(s State) int {
	return map[State]int{Healthy: c.Healthy, Unhealthy: c.Unhealthy, NotDeclared: c.NotDeclared, NotOurs: c.NotOurs}[s]
}

func (c *Counts) add(s State) {
	switch s {
	case Healthy:
		c.Healthy++
	case Unhealthy:
		c.Unhealthy++
	case NotDeclared:
		c.NotDeclared++
	case NotOurs:
		c.NotOurs++
	}
}

// Type is what a function is to people. It comes from the class and decides nothing.
type Type string

// The types.
const (
	GPU         Type = "gpu"
	NVSwitch    Type = "nvswitch"
	NIC         Type = "nic"
	Accelerator Type = "accelerator"
	Other       Type = "other"
	UnknownType Type = "unknown" // the class could not be read
)

// Label is the type in a word or two.
func (t Type) Label() string {
	switch t {
	case GPU:
		return "GPU"
	case NVSwitch:
		return "NVSwitch"
	case NIC:
		return "NIC"
	case Accelerator:
		return "accelerator"
	case Other:
		return "function"
	case UnknownType:
	}
	return "unknown"
}

func typeOf(id host.Identity) Type {
	const nvidia, bridge = 0x10de, 0x0680
	switch base := id.Class >> 16; {
	case base == 0x03:
		return GPU
	case id.Class.Sub() == bridge && id.Vendor == nvidia:
		return NVSwitch
	case base == 0x02:
		return NIC
	case base == 0x12:
		return Accelerator
	}
	return Other
}

// className is what the PCI code and ID assignment specification calls a class.
func className(c pci.Class) string {
	return cmp.Or(map[uint16]string{
		0x0108: "NVMe controller", 0x0200: "Ethernet controller", 0x0207: "InfiniBand controller", 0x0280: "network controller",
		0x0300: "VGA controller", 0x0302: "3D controller", 0x0380: "display controller", 0x0403: "audio device",
		0x0604: "PCI bridge", 0x0680: "bridge", 0x0c03: "USB controller", 0x0c80: "serial bus controller",
		0x1200: "processing accelerator",
	}[c.Sub()], map[pci.Class]string{
		0x01: "storage controller", 0x02: "network controller", 0x03: "display controller", 0x04: "multimedia device",
		0x06: "bridge", 0x08: "system peripheral", 0x0b: "coprocessor", 0x0c: "serial bus controller", 0x12: "processing accelerator",
	}[c>>16], "class "+c.String())
}

// CdevState says how far a character device can be relied on.
type CdevState string

// The states of a character device, of which only the first can be relied on.
const (
	CdevReady       CdevState = "Ready"
	CdevPending     CdevState = "Pending"
	CdevNoNumber    CdevState = "NoNumber"
	CdevNotChar     CdevState = "NotCharacterDevice"
	CdevOtherNumber CdevState = "OtherNumber"
	CdevNoIOMMU     CdevState = "NoIOMMU"
)

func cdevState(s host.CdevState) CdevState {
	switch s {
	case host.CdevReady:
		return CdevReady
	case host.CdevNoNumber:
		return CdevNoNumber
	case host.CdevNotChar:
		return CdevNotChar
	case host.CdevOtherNumber:
		return CdevOtherNumber
	case host.CdevNoIOMMU:
		return CdevNoIOMMU
	case host.CdevPending:
	}
	return CdevPending
}
