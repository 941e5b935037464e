package sim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// PlaceFile puts a regular file into /dev/vfio/devices, where only nodes belong.
func (n *Node) PlaceFile(name, content string) error {
	return n.place(name, func(to string) error {
		return n.replaceFile(to, 0o644, content)
	})
}

// PlaceDir puts a directory into /dev/vfio/devices.
func (n *Node) PlaceDir(name string) error {
	return n.place(name, func(to string) error { return n.mkdir(to) })
}

// PlaceNode puts a character device into /dev/vfio/devices that belongs to no VFIO
// device. Without privilege only 0:0 can be made.
func (n *Node) PlaceNode(name string, major, minor uint32) error {
	return n.place(name, func(to string) error {
		return unix.Mknod(to, unix.S_IFCHR|0o600, int(unix.Mkdev(major, minor)))
	})
}

// RemovePlaced removes any entry of /dev/vfio/devices: a stray one or, behind the
// kernel's back, the node of a VFIO device. The directory stays, even if empty.
func (n *Node) RemovePlaced(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !filepath.IsLocal(name) {
		return fmt.Errorf("remove %q from /dev/vfio/devices: %w", name, unix.EINVAL)
	}
	if err := os.RemoveAll(filepath.Join(n.vfioDevices(), name)); err != nil {
		return fmt.Errorf("remove %s from /dev/vfio/devices: %w", name, err)
	}
	return nil
}

func (n *Node) place(name string, build func(to string) error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !filepath.IsLocal(name) {
		return fmt.Errorf("place %q in /dev/vfio/devices: %w", name, unix.EINVAL)
	}
	if err := n.ensureVFIODevices(); err != nil {
		return fmt.Errorf("place %s in /dev/vfio/devices: %w", name, err)
	}
	if err := build(filepath.Join(n.vfioDevices(), name)); err != nil {
		return fmt.Errorf("place %s in /dev/vfio/devices: %w", name, err)
	}
	return nil
}

// HideVFIO puts an empty directory in the place of /dev/vfio/devices. So looks a
// bind mount of that directory in a container after the last device had gone once:
// it stays on the directory that devtmpfs removed (kernel.md 3.4). Later changes go
// to the real directory, which waits aside.
func (n *Node) HideVFIO() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.aside != "" {
		return nil
	}
	aside := n.scratch()
	if err := n.mkdir(aside); err != nil {
		return fmt.Errorf("hide /dev/vfio/devices: %w", err)
	}
	if err := n.swap(aside, n.roots.VFIODevices()); err != nil {
		return fmt.Errorf("hide /dev/vfio/devices: %w", err)
	}
	n.aside = aside
	return nil
}

// ShowVFIO ends HideVFIO.
func (n *Node) ShowVFIO() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.aside == "" {
		return nil
	}
	stale := n.roots.VFIODevices()
	err := unix.Renameat2(unix.AT_FDCWD, n.aside, unix.AT_FDCWD, stale, unix.RENAME_EXCHANGE)
	switch {
	case err == nil:
		err = os.RemoveAll(n.aside) // the empty one
	case errors.Is(err, unix.ENOENT): // no device is left, so no directory either
		err = os.RemoveAll(stale)
	}
	if err != nil {
		return fmt.Errorf("show /dev/vfio/devices again: %w", err)
	}
	n.aside = ""
	return nil
}

// swap exchanges two entries at once, or moves the first where there is no second.
func (n *Node) swap(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.ENOENT) {
		err = os.Rename(a, b)
	}
	return err
}
