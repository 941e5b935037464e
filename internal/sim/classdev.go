package sim

import (
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// The majors of nodes other than VFIO's. Those of RDMA are fixed (drivers/infiniband/core,
// IB_UVERBS_MAJOR and the like), the others dynamic.
const (
	rdmaMajor = 231
	uioMajor  = 509
	vdpaMajor = 508
)

// classDevice is a device that a driver makes below its own, in a directory of the class's
// name there. One without a class is in its parent's directory itself.
type classDevice struct {
	parent, class, name string
	subdirs             []string
	files               []file
	char                *charNode // nil for a device without a number
}

// charNode is a device's number and node.
type charNode struct {
	major, minor int
	path         string // below /dev
	mode         uint32
}

// dir is the device's directory below /sys.
func (c *classDevice) dir() string { return path.Join(c.parent, c.class, c.name) }

// addClassDevice adds a device in the order of device_add (drivers/base/core.c): the
// directory of the class, the device's own, the class link, then dev, the entry of the
// number, the node.
func (n *Node) addClassDevice(c *classDevice) []Step {
	dir, files, links := c.dir(), c.files, map[string]string{}
	name := path.Join(c.class, c.name)
	var steps []Step
	if c.class != "" {
		links = map[string]string{"device": c.parent, "subsystem": "class/" + c.class}
		steps = append(steps, Step{c.class, func() error { return n.ensureDir("class/"+c.class, path.Dir(dir)) }})
	}
	if c.char != nil {
		files = append([]file{{name: "uevent", mode: 0o644, text: n.ueventText(c.char.major, c.char.minor, c.char.path)}}, files...)
	}
	steps = append(steps, Step{name, func() error { return n.publish(dir, c.subdirs, files, maps.Clone(links)) }})
	if c.class != "" {
		steps = append(steps, Step{"class/" + name, func() error { return n.link("class/"+name, dir) }})
	}
	if c.char != nil {
		major, minor := c.char.major, c.char.minor
		steps = append(steps,
			Step{name + "/dev", func() error { return n.replaceFile(n.sys(dir+"/dev"), 0o444, n.devText(major, minor)) }},
			Step{name + "/char", func() error { return n.linkChar(major, minor, dir) }},
			Step{name + "/node", func() error { return n.addNode(c.char) }})
	}
	return steps
}

// dropClassDevice removes a device in the order of device_del. The directory of the class
// stays.
func (n *Node) dropClassDevice(c *classDevice) []Step {
	dir, name := c.dir(), path.Join(c.class, c.name)
	var steps []Step
	if c.char != nil {
		steps = append(steps,
			Step{name + "/node", func() error { return n.dropCharNode(c.char) }},
			Step{name + "/char", func() error { return n.unlinkChar(c.char.major, c.char.minor) }},
			Step{name + "/dev", func() error { return n.unlink(dir + "/dev") }})
	}
	if c.class != "" {
		steps = append(steps, Step{"class/" + name, func() error { return n.unlink("class/" + name) }})
	}
	return append(steps, Step{name, func() error {
		return errors.Join(n.withdrawIfThere(dir), os.RemoveAll(n.awayDir(c)))
	}})
}

// dropClassDirs removes the directories that held some devices, as the last of them goes
// (drivers/base/core.c, cleanup_glue_dir).
func (n *Node) dropClassDirs(devices []*classDevice) []Step {
	var steps []Step
	seen := map[string]bool{}
	for _, c := range devices {
		dir := path.Dir(c.dir())
		if c.class != "" && !seen[dir] {
			seen[dir] = true
			steps = append(steps, Step{c.class, func() error { return n.removeEmpty(n.sys(dir)) }})
		}
	}
	return steps
}

// removeEmpty removes a directory unless something is in it.
func (n *Node) removeEmpty(dir string) error {
	err := os.Remove(dir)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// addNode makes a node. Like devtmpfs it makes the directory with the first in it.
func (n *Node) addNode(c *charNode) error {
	name := n.dev(c.path)
	if err := n.mkdirAll(filepath.Dir(name)); err != nil {
		return err
	}
	return n.mknod(name, c.mode, c.major, c.minor)
}

// dropCharNode removes a node, and the directory with the last.
func (n *Node) dropCharNode(c *charNode) error {
	name := n.dev(c.path)
	if err := n.rmnod(name); err != nil {
		return err
	}
	return n.removeEmpty(filepath.Dir(name)) // /dev itself never is
}

// attribute is a file that only says something.
func attribute(name, text string) file { return file{name: name, mode: 0o444, text: text + "\n"} }

// number is an attribute that is a decimal number.
func number(name string, value int) file { return attribute(name, strconv.Itoa(value)) }

// takeNumber takes a given number, or the lowest that is free for 0.
func takeNumber(from *ida, wanted int) int {
	if wanted == 0 {
		return from.take()
	}
	from.reserve(wanted)
	return wanted
}
