// Package sim lays out a fake node below a directory - sysfs, devfs, kubelet's
// plugin directory and the CDI directory - as the Linux kernel lays out a real one,
// and changes it in the kernel's order. Tests, benchmarks, the demo and the command
// line's simulation point host.Roots at it.
//
// Every change is a sequence of atomic steps: a directory is built aside and
// renamed into place, links and nodes are atomic by themselves. So a reader in
// another process meets the states in between that it meets on a real machine, but
// for one: the directory of a function appears and vanishes whole, with its files.
// The layout follows listings of Linux 6.12 and 7.3; the names of sources in
// comments are the kernel's.
//
// One Node belongs to one mutator. Its methods may be called from several
// goroutines, but they do not queue up into a sensible history by themselves.
package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// scratchDir is on the node's file system but outside of what programs look at.
const scratchDir = ".sim"

// Node is a fake machine.
type Node struct {
	dir   string
	roots host.Roots
	real  bool // device nodes have real numbers
	umask bool // the umask takes away more than the right of others to write

	mu       sync.Mutex
	seq      int
	bridge   Function
	maxNUMA  int
	devices  map[string]*device // by the last element of the directory
	groups   map[string]*group
	cdevs    ida
	groupIDs ida
	minors   ida               // of group nodes
	broken   map[string]string // unreadable file: where its content waits

	ifindex                              int // the last that was given
	uverbs, umads, uios, vhosts, virtios ida // numbers in names
	rdmaNames                            map[string]bool
	network                              network

	aside string // the real /dev/vfio/devices while hidden
}

// device is a directory below /sys/devices to which a driver can be bound.
type device struct {
	path     string // below /sys, "devices/pci0000:40/.../0000:41:00.0"
	bus      string // "pci", "mdev" or "platform"
	fn       Function
	group    string
	driver   string
	override string
	enabled  bool // what the enable file says
	cdev     *cdev
	held     bool // unbound, but the last user has not closed it
	leaving  bool // to be removed when the last user has closed it
	pf       *device
	vfs      []*device
	nic      nicState
	vhost    *classDevice // of a vDPA device on vhost_vdpa
}

// New lays out a platform below a directory, which is made if missing, and returns
// the node. The directory must not hold a node already and must be on a file
// system that takes device nodes; see TempDir.
func New(dir string, p Platform) (*Node, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("lay out node: %w", err)
	}
	n := &Node{
		dir:     dir,
		roots:   host.Under(dir, "sim"),
		bridge:  p.Bridge,
		devices: map[string]*device{},
		groups:  map[string]*group{},
		broken:  map[string]string{},

		ifindex:   1, // lo
		rdmaNames: map[string]bool{},
		network:   network{virtual: map[string]host.Link{}, master: map[string]string{}, lower: map[string]string{}},
	}
	if err := n.layout(p); err != nil {
		return nil, fmt.Errorf("lay out node %s in %s: %w", p.Name, dir, err)
	}
	return n, nil
}

// Roots are the node's directories for a program.
func (n *Node) Roots(program string) host.Roots { return host.Under(n.dir, program) }

// CheckpointPath is where kubelet keeps its record of device allocations.
func (n *Node) CheckpointPath() string {
	return filepath.Join(n.roots.DevicePlugins, "kubelet_internal_checkpoint")
}

// Functions are the PCI functions there are now, bridges and VFs too, sorted by
// address, each with its present driver.
func (n *Node) Functions() []Function {
	n.mu.Lock()
	defer n.mu.Unlock()
	var list []Function
	for _, d := range n.devices {
		if d.bus == "pci" {
			f := d.fn
			f.Driver, f.Group = d.driver, d.group
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b Function) int { return a.Address().Compare(b.Address()) })
	return list
}

// Cdev is the number N of a function's cdev. It is false for a function without
// one, also while an unbind waits for the last user.
func (n *Node) Cdev(a pci.Address) (number int, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d := n.devices[a.String()]
	if d == nil || d.cdev == nil || d.held {
		return 0, false
	}
	return d.cdev.number, true
}

// DevNumber is the device number of the node of cdev N: 0:0 where there is no
// privilege to make another.
func (n *Node) DevNumber(number int) (major, minor uint32) {
	a, b := n.number(cdevMajor, number)
	return uint32(a), uint32(b)
}

// function finds a PCI function. The kernel answers a bind or unbind of an unknown
// address with ENODEV.
func (n *Node) function(a pci.Address) (*device, error) {
	d := n.devices[a.String()]
	if d == nil || d.bus != "pci" {
		return nil, fmt.Errorf("function %s: %w", a, unix.ENODEV)
	}
	return d, nil
}

// layout makes the tree of a machine without functions, then adds them.
func (n *Node) layout(p Platform) error {
	if err := os.MkdirAll(filepath.Join(n.dir, scratchDir), 0o755); err != nil {
		return err
	}
	real, err := probeNodes(filepath.Join(n.dir, scratchDir))
	if err != nil {
		return err
	}
	n.real = real
	if n.umask, err = n.hasUmask(); err != nil {
		return err
	}
	if err := n.base(); err != nil {
		return err
	}
	seen := map[pci.Address]bool{}
	for _, f := range p.Functions {
		if err := f.check(); err != nil {
			return err
		}
		if seen[f.Address()] {
			return fmt.Errorf("function %s is listed twice: %w", f.Address(), unix.EEXIST)
		}
		seen[f.Address()] = true
		n.maxNUMA = max(n.maxNUMA, f.NUMA)
		n.reserveGroup(f.Group) // so that no bridge is given a number from the list
		for _, v := range f.VFs {
			n.reserveGroup(v.Group)
		}
	}
	for _, f := range p.Functions {
		if err := n.add(f, p.Functions); err != nil {
			return err
		}
	}
	for _, f := range p.Functions {
		if f.Driver == "" {
			continue
		}
		m := mode{vfio: f.VFIO || isVFIODriver(f.Driver)}
		if err := n.bind(n.devices[f.Address().String()], f.Driver, m); err != nil {
			return err
		}
	}
	for _, f := range p.Functions {
		if len(f.VFs) == 0 {
			continue
		}
		if err := n.enableVFs(n.devices[f.Address().String()], f.VFs); err != nil {
			return err
		}
	}
	for _, path := range p.Shared {
		if err := n.addShared(path); err != nil {
			return err
		}
	}
	if p.DefaultRoute != "" {
		n.addDefaultRoute(p.DefaultRoute, "inet")
	}
	return nil
}

// hasUmask tries the umask on a directory, since it cannot be read without being
// changed for the whole process.
func (n *Node) hasUmask() (bool, error) {
	name := n.scratch()
	if err := os.Mkdir(name, 0o755); err != nil {
		return false, err
	}
	info, err := os.Lstat(name)
	if err != nil {
		return false, err
	}
	return info.Mode().Perm() != 0o755, os.Remove(name)
}

// base makes what is there before the first PCI function is found.
func (n *Node) base() error {
	if err := n.mkdir(n.roots.Sys); err != nil {
		return err // also where a node is there already
	}
	for _, d := range []string{n.roots.VFIO(), n.roots.DevicePlugins, n.roots.CDI, filepath.Dir(n.roots.Run)} {
		if err := n.mkdirAll(d); err != nil {
			return err
		}
	}
	err := n.ensureDir("bus/pci/devices", "bus/pci/drivers", "class/vfio-dev", "class/vfio", "class/iommu",
		"dev/char", "devices/virtual/vfio", "kernel/iommu_groups")
	if err != nil {
		return err
	}
	err = n.ensureFiles("bus/pci",
		file{name: "drivers_autoprobe", mode: 0o644, text: "1\n"},
		file{name: "drivers_probe", mode: 0o200},
		file{name: "rescan", mode: 0o200},
		file{name: "uevent", mode: 0o200})
	if err != nil {
		return err
	}
	if err := n.ensureDriver("pci", "vfio-pci"); err != nil {
		return err
	}
	// Modes as devtmpfs gives them (kernel.md 3.1); /dev/iommu is 0660.
	if err := n.mknod(filepath.Join(n.roots.VFIO(), "vfio"), 0o666, miscMajor, 196); err != nil {
		return err
	}
	return n.mknod(n.dev("iommu"), 0o660, miscMajor, 257)
}
