package host

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/sysfs"
)

// DevicesDir is the directory of VFIO's character devices on every host. Paths that
// are handed to kubelet and to container runtimes are below it, whatever Roots say.
const DevicesDir = "/dev/vfio/devices"

// node is an entry of the devices directory, as lstat shows it. A node is never
// opened: a file that is open on a cdev makes the unbinding of its driver wait.
type node struct {
	mode         uint32
	major, minor uint32
	ino          uint64
	ctime        unix.Timespec
}

func (n node) isChar() bool { return n.mode&unix.S_IFMT == unix.S_IFCHR }

// kind names the type of a directory entry for a person.
func (n node) kind() string {
	switch n.mode & unix.S_IFMT {
	case unix.S_IFREG:
		return "regular file"
	case unix.S_IFDIR:
		return "directory"
	case unix.S_IFLNK:
		return "symbolic link"
	case unix.S_IFBLK:
		return "block device"
	case unix.S_IFCHR:
		return fmt.Sprintf("character device %d:%d", n.major, n.minor)
	default:
		return fmt.Sprintf("entry of type %#o", n.mode&unix.S_IFMT)
	}
}

// nodePrint tells whether a cdev is the one that an earlier look saw: devtmpfs makes
// a new inode for every bind, and the class link leads to the function.
type nodePrint struct {
	node node
	link string
	// class is what the link says, nil when it leads to no PCI function. Two equal links
	// of two looks share it.
	class *classLink
}

// readNodes lists a devices directory. The directory is opened anew each time, since
// devtmpfs removes it with the last device and makes another with the next. That it
// is absent is an answer (no nodes), not an error.
func readNodes(dir string) (map[string]node, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	names, err := sysfs.Names(fd)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil // devtmpfs has removed it since it was opened: the last node has gone
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	nodes := make(map[string]node, len(names))
	for _, name := range names {
		n, err := lstat(fd, name)
		if errors.Is(err, unix.ENOENT) {
			continue // removed since the listing
		}
		if err != nil {
			return nil, &fs.PathError{Op: "lstat", Path: dir + "/" + name, Err: err}
		}
		nodes[name] = n
	}
	return nodes, nil
}

// lstat does not follow links: a link in place of a node is not the kernel's work.
func lstat(dirfd int, name string) (node, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return node{
			mode:  st.Mode,
			major: unix.Major(st.Rdev), minor: unix.Minor(st.Rdev),
			ino: st.Ino, ctime: st.Ctim,
		}, err
	}
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
