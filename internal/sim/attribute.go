package sim

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

// SetAttribute rewrites a sysfs file in a function's directory at once, or makes
// it. The value is the whole text, with its line feed if it is to have one. The
// name may have slashes, as in "vfio-dev/vfio3/dev".
func (n *Node) SetAttribute(a pci.Address, name, value string) error {
	return n.attribute("set", a, name, func(to string) error {
		mode := uint32(0o444)
		if info, err := os.Lstat(to); err == nil && info.Mode().IsRegular() {
			mode = uint32(info.Mode().Perm())
		}
		return n.replaceFile(to, mode, value)
	})
}

// RemoveAttribute makes a file or link in a function's directory vanish.
// RestoreAttribute does not bring it back.
func (n *Node) RemoveAttribute(a pci.Address, name string) error {
	return n.attribute("remove", a, name, os.Remove)
}

// BreakAttribute makes reading a file or link fail with an error that does not say
// that it is gone, for root too: an empty directory takes its place, which read
// answers with EISDIR and readlink with EINVAL. What is set meanwhile shows after
// RestoreAttribute.
func (n *Node) BreakAttribute(a pci.Address, name string) error {
	return n.attribute("break", a, name, func(to string) error {
		if n.broken[to] != "" {
			return unix.EEXIST
		}
		aside := n.scratch()
		if err := os.Mkdir(aside, 0o755); err != nil {
			return err
		}
		err := unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
		if err != nil {
			return fmt.Errorf("exchange: %w", err)
		}
		n.broken[to] = aside
		return nil
	})
}

// RestoreAttribute ends BreakAttribute.
func (n *Node) RestoreAttribute(a pci.Address, name string) error {
	return n.attribute("restore", a, name, func(to string) error {
		aside := n.broken[to]
		if aside == "" {
			return unix.ENOENT
		}
		err := unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
		if err != nil {
			return fmt.Errorf("exchange: %w", err)
		}
		delete(n.broken, to)
		return os.Remove(aside) // the empty directory
	})
}

// attribute does something to the file of a function.
func (n *Node) attribute(doing string, a pci.Address, name string, do func(to string) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.function(a)
	if err != nil {
		return fmt.Errorf("%s attribute %s: %w", doing, name, err)
	}
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%s attribute %q of %s: %w", doing, name, a, unix.EINVAL)
	}
	if err := do(n.sys(d.path + "/" + filepath.Clean(name))); err != nil {
		return fmt.Errorf("%s attribute %s of %s: %w", doing, name, a, err)
	}
	return nil
}
