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

	room *room
}

// Prepare fetches and builds what is not in the user's cache yet. It may take ten minutes then, and
// writes lines to progress. The initramfs is made anew each time.
func Prepare(ctx context.Context, progress io.Writer) (*Lab, error) {
	r, err := newRoom("kernel-lab-")
	if err != nil {
		return nil, err
	}
	l := &Lab{room: r}
	if err := l.prepare(ctx, progress); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Close removes what Prepare made, but for the cache. Where it is never called, because the process
// was killed, that happens all the same.
func (l *Lab) Close() error { return l.room.close() }

func (l *Lab) prepare(ctx context.Context, progress io.Writer) error {
	w := &work{out: progress, dir: l.room.dir}
	if err := w.install(ctx, toRun()); err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("find the cache directory: %w", err)
	}
	w.cache = filepath.Join(cache, "kata-device-plugin", "kernel")
	if err := w.take(); err != nil {
		return err
	}
	defer w.release()
	built, err := w.kernel(ctx)
	if err != nil {
		return err
	}
	l.Kernel = filepath.Join(built, "vmlinux")
	name, err := os.ReadFile(filepath.Join(built, "release"))
	if err != nil {
		return fmt.Errorf("read the kernel's release: %w", err)
	}
	l.Release = string(name)
	if l.Small, l.SRIOV, err = w.qemus(ctx); err != nil {
		return err
	}
	l.Initramfs, err = w.initramfs(ctx, built)
	return err
}

// take locks the cache, so that two runs do not build in one directory, and waits for whoever has it.
func (w *work) take() error {
	if err := os.MkdirAll(w.cache, 0o755); err != nil {
		return fmt.Errorf("make the cache directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(w.cache, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("open the lock of the cache: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		w.say("waiting for another run, which has %s locked", w.cache)
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	w.lock = f
	return nil
}

func (w *work) release() {
	_ = w.lock.Close() // which unlocks
	w.lock = nil
}
