package sim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The majors are dynamic on a real machine: they come from the top of the range
// and swap with the order of the modules (kernel.md 3.1).
const (
	cdevMajor  = 511
	groupMajor = 510
	miscMajor  = 10
)

// TempDir makes a temporary directory in which New can make device nodes, and
// which is fast: making a file takes ext4 twenty times as long as tmpfs. That is
// below $TMPDIR if it is set, or else on /dev/shm if that is not small, as it is in
// containers, or else below /tmp. A place that refuses nodes is passed over. The
// caller removes the directory; if it is killed before, the next caller does.
func TempDir() (string, error) {
	parents := []string{os.TempDir(), shm}
	if os.Getenv("TMPDIR") == "" && hasRoom(shm) {
		parents = []string{shm, os.TempDir()}
	}
	var errs []error
	for _, parent := range parents {
		dir, err := Hold(parent, "kata-sim.")
		if err == nil {
			if _, err = probeNodes(dir); err == nil {
				return dir, nil
			}
			err = errors.Join(err, os.RemoveAll(dir))
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("make a temporary directory for a node: %w", errors.Join(errs...))
}

// shm is a tmpfs on every Linux system.
const shm = "/dev/shm"

// hasRoom says whether a file system has a gigabyte free. 2048 GPUs take half of
// that, since the smallest file on tmpfs takes a page.
func hasRoom(dir string) bool {
	var st unix.Statfs_t
	err := unix.Statfs(dir, &st)
	return err == nil && st.Bavail*uint64(st.Bsize) >= 1<<30
}

// probeNodes finds out which device nodes can be made in a directory: any (real
// is true) or only 0:0. The latter needs no privilege since Linux 5.8, because
// overlayfs uses that node as its whiteout; on an overlay itself it is refused.
func probeNodes(dir string) (real bool, err error) {
	name := filepath.Join(dir, ".probe")
	for _, major := range []uint32{cdevMajor, 0} {
		err = unix.Mknod(name, unix.S_IFCHR|0o600, int(unix.Mkdev(major, 0)))
		if err == nil {
			return major != 0, os.Remove(name)
		}
		if !errors.Is(err, unix.EPERM) {
			break
		}
	}
	return false, fmt.Errorf("create a character device in %s: %w; overlay file systems refuse it:"+
		" use a directory on tmpfs or ext4, such as /dev/shm", dir, err)
}

// number is the device number that nodes and dev files show. Without privilege
// every node is 0:0, and the dev files say so as well.
func (n *Node) number(major, minor int) (int, int) {
	if !n.real {
		return 0, 0
	}
	return major, minor
}

// devText is the text of a sysfs dev file.
func (n *Node) devText(major, minor int) string {
	major, minor = n.number(major, minor)
	return fmt.Sprintf("%d:%d\n", major, minor)
}

// ueventText is what the kernel puts before a device's own uevent lines.
func (n *Node) ueventText(major, minor int, devname string) string {
	major, minor = n.number(major, minor)
	return fmt.Sprintf("MAJOR=%d\nMINOR=%d\nDEVNAME=%s\n", major, minor, devname)
}

// mknod makes a node as devtmpfs does (drivers/base/devtmpfs.c, handle_create):
// first the node, then its mode, which a watcher sees as CREATE and ATTRIB.
func (n *Node) mknod(name string, mode uint32, major, minor int) error {
	major, minor = n.number(major, minor)
	dev := unix.Mkdev(uint32(major), uint32(minor))
	if err := unix.Mknod(name, unix.S_IFCHR|mode, int(dev)); err != nil {
		return fmt.Errorf("create node %s: %w", name, err)
	}
	if err := os.Chmod(name, os.FileMode(mode)); err != nil {
		return fmt.Errorf("set mode of node %s: %w", name, err)
	}
	return nil
}

// rmnod removes a node as devtmpfs does (handle_remove): it takes all permissions
// away first, which a watcher sees as ATTRIB, then comes DELETE.
func (n *Node) rmnod(name string) error {
	err := os.Chmod(name, 0)
	if err == nil {
		err = os.Remove(name)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove node %s: %w", name, err)
	}
	return nil
}

// vfioDevices is the directory of the cdevs, also while HideVFIO has put it aside.
func (n *Node) vfioDevices() string {
	if n.aside != "" {
		return n.aside
	}
	return n.roots.VFIODevices()
}

// ensureVFIODevices makes the directory of the cdevs. Like devtmpfs it does so
// with the first node, not earlier.
func (n *Node) ensureVFIODevices() error {
	if err := n.mkdir(n.vfioDevices()); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// dropVFIODevices removes the directory of the cdevs if the last has gone.
func (n *Node) dropVFIODevices() error { return n.removeEmpty(n.vfioDevices()) }
