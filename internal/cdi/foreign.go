package cdi

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"kata-device-plugin/internal/pci"
)

// Neighbours reads the CDI specs of other owners in a directory. It never touches them.
type Neighbours struct {
	dir  string
	seen map[string]neighbour // by file name
}

type neighbour struct {
	print print
	spec  Foreign
}

// Foreign is what is to be known about another owner's spec file.
type Foreign struct {
	Path string
	// Err says why the file cannot be parsed. Consumers differ in what they make of
	// it: Kata's shims refuse every CDI device on the node.
	Err error
	// Unexamined is the size of a file that was not read because of it, 0 for others.
	Unexamined int64
	// Version is the declared CDI version, Kind the kind, Names the devices. Of a file that
	// cannot be read, Kind and Names are what they were when it last could: unknown is not gone.
	Version, Kind string
	Names         []string
}

// ClaimKind is the kind of the specs that the DRA driver makes, one for each claim that it has
// prepared. A device in them is named by the claim's UID, its type and its address:
// 1b9d...-gpu-0000-1b-00-0.
const ClaimKind = "vfio.katacontainers.io/claim"

// Claimed is a function that a DRA claim holds.
type Claimed struct {
	Name    string // of the CDI device
	Address pci.Address
}

// Claimed are the functions that the claim of the spec holds, none where it is no claim's.
func (f *Foreign) Claimed() []Claimed {
	if f.Kind != ClaimKind {
		return nil
	}
	var all []Claimed
	for _, name := range f.Names {
		if _, a, ok := ParseClaimed(name); ok {
			all = append(all, Claimed{Name: name, Address: a})
		}
	}
	return all
}

// ParseClaimed takes the name of a claim's device apart: the claim's UID, which is "" in the name
// that the device itself has, and the address. They are strung together with dashes, which a UID
// has too.
func ParseClaimed(name string) (uid string, a pci.Address, ok bool) {
	const device = 5 // parts of a device's own name: the type, and four of the address
	parts := strings.Split(name, "-")
	at := len(parts) - device
	if at < 0 {
		return "", a, false
	}
	a, err := pci.ParseAddress(parts[at+1] + ":" + parts[at+2] + ":" + parts[at+3] + "." + parts[at+4])
	return strings.Join(parts[:at], "-"), a, err == nil
}

// TooNew says whether Kata's Go shim refuses the file, and with it every CDI device,
// because it was written for a later version than the shim's library knows (0.6.0).
func (f *Foreign) TooNew() bool {
	return f.Err == nil && f.Unexamined == 0 && !slices.Contains([]string{"0.3.0", "0.4.0", "0.5.0", "0.6.0"}, f.Version)
}

// NewNeighbours watches a directory's foreign specs.
func NewNeighbours(dir string) *Neighbours {
	return &Neighbours{dir: dir, seen: map[string]neighbour{}}
}

// Read returns the specs of all files in the directory but those named in own. Only
// files that have changed since the last call are read.
func (n *Neighbours) Read(own []string) ([]Foreign, error) {
	entries, err := os.ReadDir(n.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list CDI directory: %w", err)
	}
	now := make(map[string]neighbour)
	var all []Foreign
	for _, e := range entries {
		name := e.Name()
		ext := filepath.Ext(name)
		// The suffixes and the depth that CDI readers look at.
		if (ext != ".json" && ext != ".yaml") || e.IsDir() || slices.Contains(own, name) {
			continue
		}
		path := filepath.Join(n.dir, name)
		p, err := printOf(path, unix.Stat) // readers follow links
		if err == nil && p == (print{}) {
			continue // removed since the listing, or a link to nothing
		}
		seen, known := n.seen[name]
		if !known || err != nil || seen.print != p {
			seen = neighbour{print: p, spec: read(path, p, seen.spec)}
		}
		now[name] = seen
		all = append(all, seen.spec)
	}
	n.seen = now
	return all, nil
}

// maxSpec is more than the specs of whole GPU nodes have. Larger files are not read: the
// library's parser takes some forty times a file's size in memory, and a second for each
// few hundred kilobytes, in which the loop does nothing else.
const maxSpec = 256 << 10

func read(path string, p print, before Foreign) Foreign {
	f := Foreign{Path: path, Kind: before.Kind, Names: before.Names}
	switch {
	case p.mode&unix.S_IFMT != unix.S_IFREG:
		// To open a named pipe would wait for a writer, here and in every consumer.
		f.Err = errors.New("it is no regular file")
		return f
	case p.size > maxSpec:
		f.Unexamined = p.size
		return f
	}
	spec, err := cdi.ReadSpec(path, 0)
	if err != nil {
		f.Err = errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
		return f
	}
	f.Version, f.Kind, f.Names = spec.Version, spec.Kind, nil
	for i := range spec.Devices {
		f.Names = append(f.Names, spec.Devices[i].Name)
	}
	return f
}
