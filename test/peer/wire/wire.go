// Package wire is what a test and the first process of its node say to each other: one
// JSON value a line, on a Unix socket in the node's state directory. Each connection
// carries one request.
package wire

// Where the node's own things are inside its mount namespace.
const (
	ProgramDir = "/run/bin"  // the programs, by name
	StateDir   = "/run/peer" // the node's state directory
	MachineDir = "/run/node" // the simulated machine
	ControlEnd = "control"   // the socket's name in the state directory
	Hold       = "hold"      // as long as a file of this name is there, no pod gets its network
)

// Spec says what the first process of a node makes. Paths are those of the host.
type Spec struct {
	State    string            // the state directory
	Machine  string            // the simulated machine, with dev and sys below it; empty for none
	Hostname string            //
	Network  string            // Alone, Joined or Bridge
	BootID   string            // what the kernel is to say of this boot; empty leaves what it says
	Programs map[string]string // name in ProgramDir to path
	Sysctls  []string          // below /proc/sys: the node gets files of its own for them
	CDISize  string            // size of a file system for CDI specs alone; empty for none
}

// Request is the first line of a connection; one of its fields is set.
type Request struct {
	Start *Start `json:",omitempty"`
	Dial  string `json:",omitempty"` // a TCP address inside; after an empty Event the connection is that one
}

// Networks of a first process.
const (
	Alone  = "alone"  // an address and a default route that leads nowhere
	Joined = "joined" // loopback alone: the test puts an interface in and configures it
	Bridge = "bridge" // a bridge, to which the test connects others
)

// Names and addresses of the network of a cluster: each node has a bridge of that name as well,
// on which its pods are.
const (
	BridgeName    = "lan"
	BridgeAddress = "192.0.2.1"
	BridgeNet     = "192.0.2.0/24"
	PodNet        = "198.18.0.0/15"
	NodeInterface = "node0"
)

// Start runs a program. Paths are those inside.
type Start struct {
	Path      string
	Args      []string // without the program's own name
	Log       string   // what the program prints is added here
	Container *Container
}

// Container has the program run as the main process of a container does: in a root
// directory of its own, as uid 0 without any capability.
type Container struct {
	Root   string // an existing directory for the root's mount
	Mounts []Mount
}

// Mount is a bind mount, or an in-memory directory if it has no source.
type Mount struct {
	Source, Target string
	ReadOnly       bool
	Options        string
}

// Event is an answer: first that a program runs, later that it has ended.
type Event struct {
	Error  string `json:",omitempty"`
	PID    int    `json:",omitempty"` // inside
	Exited bool   `json:",omitempty"`
	Code   int    `json:",omitempty"`
	Signal int    `json:",omitempty"` // what ended it, 0 if it exited by itself
}

// Order is a further line of a connection that started a program.
type Order struct{ Signal int }
