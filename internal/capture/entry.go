package capture

import "time"

// Kind is what an entry is. Its text is the word that begins a line.
type Kind string

// The kinds of entries.
const (
	Dir     Kind = "dir"
	File    Kind = "file"
	Symlink Kind = "symlink"
	Node    Kind = "node"
	Socket  Kind = "socket"
	FIFO    Kind = "fifo"
	Other   Kind = "other"  // of a type that is none of the above
	Absent  Kind = "absent" // known not to exist
	Unknown Kind = "error"  // could not be examined
	Lock    Kind = "lock"   // a file that is locked while something is offered
)

// Entry is what is known of one path.
type Entry struct {
	Path string // on the host
	Kind Kind
	// Perm is nil where mode and owner were not asked for.
	Perm *Perm
	// Unread says that it is there, and that nobody asked what is in it: the names of a
	// directory, the text of a file, the target of a link. Failure is what who asked was told.
	Unread  bool
	Failure *Failure

	Names  []string // of a directory, sorted
	Text   []byte   // of a file; of a lock the names of those who have it
	Target string   // of a link

	Block        bool // a node that is a block device, and no character device
	Major, Minor uint32
	// State is what became of a connection to a socket, or whether a lock is held.
	State string
	// Modified is when a file was written, zero where nobody asked. Label is what SELinux knows it by.
	Modified time.Time
	Label    string
}

// The states of a socket and of a lock.
const (
	Accepted = "accepted"
	Refused  = "refused"
	Held     = "held"
	Free     = "free"
)

// Perm is who may do what with a file.
type Perm struct {
	Mode     uint32 // as chmod spells it, 0755
	UID, GID int
}
