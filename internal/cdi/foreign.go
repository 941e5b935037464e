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

	"kata-device-plugin/internal/draname"
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
	// Unread says why nobody here knows what the file says: it may not be read, or reading it fails.
	// Consumers may well read it.
	Unread error
	// Unexamined is the size of a file that was not read because of it, 0 for others.
	Unexamined int64
	// Version is the declared CDI version, Kind the kind, Names the devices. Of a file that
	// cannot be read, Kind and Names are what they were when it last could: unknown is not gone.
	Version, Kind string
	Names         []string
	// Nodes are those on the host of each of Names, in their order.
	Nodes [][]string
	// Numbered are nodes of which the spec itself says the number, by the name of the device.
	Numbered map[string][]Number
}

// Number is a device number that a spec has for a node of the host.
type Number struct {
	OnHost       string
	Major, Minor int64
}

// Claimed is a function that a DRA claim holds.
type Claimed struct {
	Name    string // of the CDI device
	Address pci.Address
}

// Claimed are the functions that the claim of the spec holds, none where it is no claim's.
func (f *Foreign) Claimed() []Claimed {
	if f.Kind != draname.ClaimKind {
		return nil
	}
	var all []Claimed
	for _, name := range f.Names {
		if _, a, ok := draname.Parse(name); ok {
			all = append(all, Claimed{Name: name, Address: a})
		}
	}
	return all
}

// TooNew says whether Kata's Go shim refuses the file, and with it every CDI device,
// because it was written for a later version than the shim's library knows (0.6.0).
func (f *Foreign) TooNew() bool {
	return f.Known() && !slices.Contains([]string{"0.3.0", "0.4.0", "0.5.0", "0.6.0"}, f.Version)
}

// Known says whether it is known what the file says.
func (f *Foreign) Known() bool { return f.Err == nil && f.Unread == nil && f.Unexamined == 0 }

// NewNeighbours watches a directory's foreign specs.
func NewNeighbours(dir string) *Neighbours {
	return &Neighbours{dir: dir, seen: map[string]neighbour{}}
}

// Read returns the specs of all files in the directory but those named in own. Only
// files that have changed since the last call are read, and those that could not be read then.
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
		if !known || err != nil || seen.print != p || seen.spec.Unread != nil {
			before := seen.spec
			seen = neighbour{print: p, spec: Foreign{Path: path, Kind: before.Kind, Names: before.Names, Nodes: before.Nodes, Numbered: before.Numbered}}
			if err == nil {
				err = seen.spec.read(p)
			}
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed since the look at it
			}
			seen.spec.Unread = err
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

// readSpec reads a spec as runtimes do. The library's reader does not expect a list that has null in it, and panics:
// that a file of anybody makes it do so is a fault of the file, and may not end the program.
func readSpec(path string) (spec *cdi.Spec, err error) {
	defer func() {
		if why := recover(); why != nil {
			spec, err = nil, fmt.Errorf("parse CDI spec %s: the library of runtimes panics: %v", path, why)
		}
	}()
	return cdi.ReadSpec(path, 0)
}

// read brings what is known of a file up to date. It fails where the file cannot be read, which says
// nothing of what is in it.
func (f *Foreign) read(p print) error {
	switch {
	case p.mode&unix.S_IFMT != unix.S_IFREG:
		// To open a named pipe would wait for a writer, here and in every consumer.
		f.Err = errors.New("it is no regular file")
		return nil
	case p.size > maxSpec:
		f.Unexamined = p.size
		return nil
	}
	spec, err := readSpec(f.Path)
	if denied, ok := errors.AsType[*fs.PathError](err); ok {
		return denied
	}
	if err != nil {
		f.Err = errors.New(strings.ReplaceAll(err.Error(), "\n", " "))
		return nil
	}
	f.Version, f.Kind, f.Names, f.Nodes, f.Numbered = spec.Version, spec.Kind, nil, nil, map[string][]Number{}
	for i := range spec.Devices {
		d := deviceOf(&spec.Devices[i])
		for _, n := range spec.Devices[i].ContainerEdits.DeviceNodes {
			if n != nil && n.Major != 0 { // a list may have null; runtimes take 0 for "as it is on the host"
				f.Numbered[d.Name] = append(f.Numbered[d.Name], Number{Node{Path: n.Path, Host: n.HostPath}.OnHost(), n.Major, n.Minor})
			}
		}
		nodes := make([]string, len(d.Nodes))
		for k, n := range d.Nodes {
			nodes[k] = n.OnHost()
		}
		f.Names, f.Nodes = append(f.Names, d.Name), append(f.Nodes, nodes)
	}
	return nil
}
