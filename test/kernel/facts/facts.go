// Package facts takes down what the product reads of a node: the same list of paths on a real
// kernel and on the simulator's tree. What is not in the list is not compared, so the list has to
// grow with internal/host.
package facts

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// Table has an entry for each path, relative to the node's root: "sys/bus/pci/devices/0000:21:00.0".
type Table map[string]string

// attributes are the files of a function's directory that internal/host reads.
func attributes() []string {
	return []string{"vendor", "device", "class", "revision", "subsystem_vendor", "subsystem_device", "numa_node", "sriov_numvfs"}
}

// links are the links of a function's directory that internal/host reads.
func links() []string { return []string{"driver", "physfn", "iommu_group"} }

// kept are what sim.Function needs to lay out the same machine and the product does not read.
func kept() []string {
	return []string{"sriov_totalvfs", "sriov_offset", "sriov_stride", "sriov_vf_device", "max_link_speed", "max_link_width"}
}

// IsKept says whether a path is there for the layout only, and not to be compared.
func IsKept(name string) bool {
	for _, k := range kept() {
		if path.Base(name) == k {
			return true
		}
	}
	return false
}

// maxVFs is more than any machine here has.
const maxVFs = 64

const (
	bus    = "sys/bus/pci/devices"
	class  = "sys/class/vfio-dev"
	groups = "sys/kernel/iommu_groups"
)

// Take takes the facts of the node below a directory.
func Take(root string) Table {
	t := taker{root: root, table: Table{}}
	for _, address := range t.list(bus) {
		at := bus + "/" + address
		t.link(at)
		t.function(at)
	}
	for _, name := range t.list(class) {
		t.link(class + "/" + name)
	}
	for _, group := range t.list(groups) {
		t.list(groups + "/" + group + "/devices")
	}
	t.node("dev/vfio")
	for _, name := range t.list("dev/vfio/devices") {
		t.node("dev/vfio/devices/" + name)
	}
	return t.table
}

type taker struct {
	root  string
	table Table
}

// function takes one function's facts, by the bus's link and by the directory that it leads to.
func (t taker) function(at string) {
	for _, name := range attributes() {
		t.file(at + "/" + name)
	}
	for _, name := range kept() {
		t.file(at + "/" + name)
	}
	for _, name := range links() {
		t.link(at + "/" + name)
	}
	for n := range maxVFs {
		name := fmt.Sprintf("%s/virtfn%d", at, n)
		if t.link(name); t.table[name][0] == '!' {
			break
		}
	}
	for _, name := range t.list(at + "/vfio-dev") {
		t.file(at + "/vfio-dev/" + name + "/dev")
	}
}

// file notes a file's content, or why it cannot be read.
func (t taker) file(name string) {
	text, err := os.ReadFile(filepath.Join(t.root, name))
	if err != nil {
		t.table[name] = failure(err)
		return
	}
	t.table[name] = fmt.Sprintf("%q", text)
}

func (t taker) link(name string) {
	target, err := os.Readlink(filepath.Join(t.root, name))
	if err != nil {
		t.table[name] = failure(err)
		return
	}
	t.table[name] = "-> " + target
}

// list notes the names in a directory, as a set.
func (t taker) list(name string) []string {
	entries, err := os.ReadDir(filepath.Join(t.root, name))
	if err != nil {
		t.table[name] = failure(err)
		return nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	sort.Strings(names)
	t.table[name] = "{" + strings.Join(names, " ") + "}"
	return names
}

// node notes what lstat says of a node: type, permissions, owner and number.
func (t taker) node(name string) {
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(t.root, name), &st); err != nil {
		t.table[name] = failure(err)
		return
	}
	text := fmt.Sprintf("%#o %d:%d", st.Mode, st.Uid, st.Gid)
	if st.Mode&unix.S_IFMT == unix.S_IFCHR {
		text += fmt.Sprintf(" %d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	}
	t.table[name] = text
}

// failure is an error by the kernel's name for it.
func failure(err error) string {
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		return "!" + unix.ErrnoName(errno)
	}
	return "!" + err.Error()
}
