// Package kernel runs the shipped plugin on a real Linux kernel with VFIO and IOMMUFD, under QEMU:
// it fetches and builds the kernel, packs the guest, starts machines whose PCI functions pose as
// NVIDIA's, and reads what the guest reports. What the simulator lays out is held against what this
// kernel shows, file by file.
package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Lab is everything that a machine is started from.
type Lab struct {
	// Kernel is the kernel that was built, and Release its name.
	Kernel  string
	Release string
	// Initramfs has the guest's first process, the plugin and the modules.
	Initramfs string
	// Small is the QEMU that is installed; SRIOV is one that has virtual functions.
	Small, SRIOV QEMU
}

// Prepare fetches and builds what is not in the user's cache yet. It may take ten minutes then, and
// writes lines to progress. The initramfs is made anew in dir.
func Prepare(ctx context.Context, dir string, progress io.Writer) (*Lab, error) {
	w := &work{out: progress}
	if err := w.install(ctx); err != nil {
		return nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the cache directory: %w", err)
	}
	w.cache = filepath.Join(cache, "kata-device-plugin", "kernel")
	release, err := lock(w.cache)
	if err != nil {
		return nil, err
	}
	defer release()
	built, err := w.kernel(ctx)
	if err != nil {
		return nil, err
	}
	l := &Lab{Kernel: filepath.Join(built, "vmlinux")}
	name, err := os.ReadFile(filepath.Join(built, "release"))
	if err != nil {
		return nil, fmt.Errorf("read the kernel's release: %w", err)
	}
	l.Release = string(name)
	if l.Small, l.SRIOV, err = w.qemus(ctx); err != nil {
		return nil, err
	}
	if l.Initramfs, err = w.initramfs(ctx, dir, built); err != nil {
		return nil, err
	}
	return l, nil
}

// lock keeps two runs from building in one directory.
func lock(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the cache: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return func() { _ = f.Close() }, nil // closing unlocks
}
