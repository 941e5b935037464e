package host

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"kata-device-plugin/internal/pci"
)

// Source is where a look reads from.
type Source struct {
	// Sys is sysfs, usually an *sysfs.FS.
	Sys fs.ReadLinkFS
	// Dev is devtmpfs, usually a devfs.Dir.
	Dev DevFS
	// Wanted says which functions without a character device are worth a place in
	// the snapshot. nil stands for all of them.
	Wanted func(Identity) bool
	// PCIeLink says of which functions Function.PCIeLink is read; nil stands for none. What
	// could not be told is asked for again by a Look only: nothing sends an event for it.
	PCIeLink func(Identity) bool

	// Network says of which functions Function.Network is read; nil stands for none. Where it
	// is set a Glance is a Look: what it adds sends no event in /dev/vfio.
	Network func(Identity) bool
	// Links reads what netlink shows of the node's own network; nil for nothing.
	Links func() (*Links, error)
	// Profile asks a function for its DDP package; nil for no such question. It is asked of
	// physical functions only.
	Profile func(a pci.Address) (string, error)
}

// Look reads everything. prev, which may be nil, is only used for what cannot be
// read now.
func (src Source) Look(prev *Snapshot) *Snapshot { return src.look(prev, true) }

// Glance lists everything, but reads only the functions whose character device came,
// went or changed hands since prev, and their IOMMU groups. Two system calls a
// device tell: the node's inode and the class link. What sends no event is as old as
// the last Look: the driver of a function that is not on VFIO, also as a companion of
// others, the number of VFs, and that a group has gone which VFIO invented for a
// function without an IOMMU, when that was in use while it was unbound. With Network set it is
// a Look.
func (src Source) Glance(prev *Snapshot) *Snapshot {
	return src.look(prev, prev == nil || src.Network != nil)
}

// Again reads one function of a snapshot anew, and nothing else but its IOMMU group: what
// may change while the function stays bound, and all of it when the node or the class
// link is another one than the snapshot's.
// It reports false when the function's character device is not where the snapshot has
// it; only a Look or a Glance can then tell what became of it.
//
// Where Network is set all of the function is read, also of one without a character device:
// that it has got one since shows as another driver.
func (src Source) Again(s *Snapshot, a pci.Address) (Function, bool) {
	before, ok := s.Function(a)
	if !ok || before.Cdev == nil && src.Network == nil {
		return Function{}, false
	}
	l := newLook(src, s, true)
	if before.Cdev == nil {
		f, verdict := l.function(a, nil, before)
		l.relateTo(&f, s)
		return f, verdict == found
	}
	name := before.Cdev.Name
	n, err := src.Dev.Lstat(DevicesDir + "/" + name)
	if err != nil {
		return Function{}, false
	}
	l.nodes = map[string]DevFile{name: n}
	link, err := src.Sys.ReadLink("class/vfio-dev/" + name)
	if err != nil {
		return Function{}, false
	}
	l.enter(name, link)
	entry := l.cdevs[a]
	if entry == nil {
		return Function{}, false // the number is another device's now
	}
	if src.Network == nil && before.Err == nil && before.Cdev.State == CdevReady && l.next.prints[name] == s.prints[name] {
		return l.refresh(*before, entry), true
	}
	f, verdict := l.function(a, entry, before)
	l.relateTo(&f, s)
	return f, verdict == found
}

// refresh reads what may change of a function while it stays bound: its driver is the
// one that made the node, and its identity and place last longer than that.
func (l *look) refresh(f Function, link *classLink) Function {
	r := &reader{sys: l.src.Sys, dir: link.dir}
	f.VFs = r.vfs(f.VFs)
	if _, r.bound = r.link("driver", f.Driver); !r.bound {
		f.Cdev = &Cdev{Name: f.Cdev.Name, Major: f.Cdev.Major, Minor: f.Cdev.Minor}
		f.Cdev.examine(l.nodes, false, "")
	}
	if f.Group != nil {
		g, err := l.group(f.Group.Number)
		if err != nil {
			r.fail("iommu_group", err)
		} else {
			f.Group = g
		}
	}
	f.Err = errors.Join(r.errs...)
	return f
}

// look is one pass over the node.
type look struct {
	src  Source
	prev *Snapshot
	full bool
	next *Snapshot

	nodes map[string]DevFile         // the devices directory
	cdevs map[pci.Address]*classLink // /sys/class/vfio-dev, as far as it is PCI
	dirty map[string]bool            // IOMMU groups in which something changed
	fresh map[string]bool            // IOMMU groups that were read in this pass
	kept  []int                      // functions taken over from prev, in next.Functions

	allDirty bool // a function that was read may be in any group

	vdpaNames map[string]bool // the vDPA bus, once somebody asked
}

// classLink is an entry of /sys/class/vfio-dev: a link to the device's directory.
type classLink struct {
	name string // vfioN or noiommu-vfioN
	dir  string // the function's directory, relative to /sys
	path pci.Path
}

func newLook(src Source, prev *Snapshot, full bool) *look {
	if prev == nil {
		prev = &Snapshot{}
	}
	return &look{
		src: src, prev: prev, full: full,
		next: &Snapshot{
			index:    map[pci.Address]int{},
			unwanted: map[pci.Address]bool{},
			prints:   map[string]nodePrint{},
			groups:   map[string]*IOMMUGroup{},
		},
		cdevs: map[pci.Address]*classLink{},
		dirty: map[string]bool{},
		fresh: map[string]bool{},
	}
}

func (src Source) look(prev *Snapshot, full bool) *Snapshot {
	l := newLook(src, prev, full)
	// Nodes before class links: when a number changes hands in between, the link,
	// which names the function, is the newer of the two.
	l.listNodes()
	l.listClass()
	l.orphans()
	l.functions()
	l.links()
	if src.Network != nil {
		l.relate()
		l.shared()
		l.use()
	}
	slices.SortFunc(l.next.Strays, func(a, b Stray) int { return strings.Compare(a.Name, b.Name) })
	return l.next
}

func (l *look) listNodes() {
	nodes, err := l.src.listDevices()
	if err != nil {
		l.next.Unread = append(l.next.Unread, err)
		nodes = make(map[string]DevFile, len(l.prev.prints))
		for name, p := range l.prev.prints {
			if p.there {
				nodes[name] = p.node
			}
		}
	}
	l.nodes = nodes
}

func (l *look) listClass() {
	const class = "class/vfio-dev"
	names, err := l.list(class)
	if err != nil {
		for name, p := range l.prev.prints {
			if p.link != "" {
				l.enter(name, p.link)
			}
		}
		return
	}
	for _, name := range names {
		link, err := l.src.Sys.ReadLink(class + "/" + name)
		if gone(err) {
			continue // unbound since the listing
		}
		if err != nil {
			l.next.Unread = append(l.next.Unread, fmt.Errorf("read class link of %s: %w", name, err))
			if link = l.prev.prints[name].link; link == "" {
				l.next.prints[name] = l.print(name, "", nil)
				l.stray(name, StrayUnreadable, "/sys/"+class+"/"+name, err.Error())
				continue
			}
		}
		l.enter(name, link)
	}
}

// enter notes one class link.
func (l *look) enter(name, link string) {
	if before := l.prev.prints[name]; before.class != nil && before.link == link {
		l.next.prints[name] = l.print(name, link, before.class)
		l.cdevs[before.class.path.Address] = before.class
		return
	}
	l.next.prints[name] = l.print(name, link, nil)
	if ok, _ := cdevName(name); !ok {
		l.stray(name, StrayJunkName, "/sys/class/vfio-dev/"+name, "class entry of an unknown form")
		return
	}
	target := strings.TrimPrefix(link, "../../")
	dir, ok := strings.CutSuffix(target, "/vfio-dev/"+name)
	path, err := pci.ParsePath(dir)
	if !ok || err != nil {
		l.stray(name, StrayNotPCI, "/sys/"+target, "the parent is no PCI function")
		return
	}
	class := &classLink{name: name, dir: dir, path: path}
	l.cdevs[path.Address] = class
	l.next.prints[name] = l.print(name, link, class)
}

// print is what a later look compares.
func (l *look) print(name, link string, class *classLink) nodePrint {
	n, there := l.nodes[name]
	return nodePrint{node: n, there: there, link: link, class: class}
}

// orphans notes the nodes that sysfs does not list.
func (l *look) orphans() {
	for name, n := range l.nodes {
		if _, listed := l.next.prints[name]; listed {
			continue
		}
		l.next.prints[name] = nodePrint{node: n, there: true} // for a look that cannot list the directory
		path := DevicesDir + "/" + name
		ok, noIOMMU := cdevName(name)
		switch {
		case !ok:
			l.stray(name, StrayJunkName, path, n.kind())
		case !n.isChar():
			l.stray(name, StrayNotChar, path, n.kind())
		case noIOMMU:
			l.stray(name, StrayNoIOMMU, path, n.kind())
		default:
			l.stray(name, StrayOrphan, path, n.kind())
		}
	}
}

func (l *look) stray(name string, kind StrayKind, path, detail string) {
	l.next.Strays = append(l.next.Strays, Stray{Name: name, Kind: kind, Path: path, Detail: detail})
}

// list returns the names in a directory of sysfs. A directory that does not exist is
// empty: without the vfio module there is no class vfio-dev.
func (l *look) list(dir string) ([]string, error) {
	entries, err := fs.ReadDir(l.src.Sys, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		err = fmt.Errorf("list /sys/%s: %w", dir, err)
		l.next.Unread = append(l.next.Unread, err)
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// gone says whether an error means that the file's device has left while we looked:
// the name is not there any more, or the file was opened before and kernfs refuses to
// read it (ENODEV, fs/kernfs/file.c).
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}
