package host

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// DevicesDir is the directory of VFIO's character devices on every host. Paths that
// are handed to kubelet and to container runtimes are below it, whatever Roots say.
const DevicesDir = "/dev/vfio/devices"

// DevFS is what there is below /dev. Paths are those of the host, whatever Roots say. It is no
// fs.FS, since device numbers are not part of one.
type DevFS interface {
	// List examines what is in a directory. One that does not exist is fs.ErrNotExist.
	List(dir string) (map[string]DevFile, error)
	// Lstat examines one entry, and does not follow links.
	Lstat(path string) (DevFile, error)
}

// DevFile is an entry below /dev, as lstat shows it.
type DevFile struct {
	Type         fs.FileMode // its type bits
	Major, Minor uint32      // of a device
	// Inode and Changed tell it from another one that has the same name later. Changed is in
	// nanoseconds since 1970. Both are 0 where a single moment is all that is known.
	Inode   uint64
	Changed int64
}

func (n DevFile) isChar() bool { return n.Type&fs.ModeCharDevice != 0 }

// kind names the type of a directory entry for a person.
func (n DevFile) kind() string {
	switch n.Type {
	case 0:
		return "regular file"
	case fs.ModeDir:
		return "directory"
	case fs.ModeSymlink:
		return "symbolic link"
	case fs.ModeDevice:
		return "block device"
	case fs.ModeDevice | fs.ModeCharDevice:
		return fmt.Sprintf("character device %d:%d", n.Major, n.Minor)
	case fs.ModeNamedPipe:
		return "named pipe"
	case fs.ModeSocket:
		return "socket"
	default:
		return fmt.Sprintf("entry of type %v", n.Type)
	}
}

// nodePrint tells whether a cdev is the one that an earlier look saw: devtmpfs makes
// a new inode for every bind, and the class link leads to the function.
type nodePrint struct {
	node DevFile
	// there says whether there was a node at all.
	there bool
	link  string
	// class is what the link says, nil when it leads to no PCI function. Two equal links
	// of two looks share it.
	class *classLink
}

// listDevices lists the devices directory. That it is absent is an answer (no nodes), not an error:
// devtmpfs removes it with the last device.
func (src Source) listDevices() (map[string]DevFile, error) {
	nodes, err := src.Dev.List(DevicesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return nodes, err
}

// cdevName says whether a name is one that the kernel gives to the character device
// of a VFIO device: vfioN without sign or leading zero. Since Linux 7 devices
// without an IOMMU are called noiommu-vfioN (drivers/vfio/vfio_main.c).
func cdevName(name string) (ok, noIOMMU bool) {
	name, noIOMMU = strings.CutPrefix(name, "noiommu-")
	n, ok := strings.CutPrefix(name, "vfio")
	if !ok || n == "" || len(n) > 10 || (len(n) > 1 && n[0] == '0') {
		return false, false
	}
	for i := range len(n) {
		if n[i] < '0' || n[i] > '9' {
			return false, false
		}
	}
	return true, noIOMMU
}
