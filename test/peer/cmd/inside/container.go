package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"kata-device-plugin/test/peer/wire"
)

// container makes a root directory of the mounts in a file, and becomes the program. The
// process is in a new mount namespace already.
func container(file string, argv []string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read what the container is to be: %w", err)
	}
	var c wire.Container
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("read what the container is to be: %w", err)
	}
	runtime.LockOSThread() // capabilities are a thread's; the one that drops them is the one that execs
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("take the container's mounts out of the node's hands: %w", err)
	}
	if err := memory(c.Root, "mode=755"); err != nil {
		return err
	}
	for _, m := range c.Mounts {
		if err := place(c.Root, m); err != nil {
			return err
		}
	}
	if err := enter(c.Root); err != nil {
		return fmt.Errorf("enter the container's root: %w", err)
	}
	if err := readOnly("/"); err != nil {
		return err
	}
	if err := powerless(); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Exec(argv[0], argv, []string{"PATH=/"}); err != nil {
		return fmt.Errorf("run %s: %w", argv[0], err)
	}
	return nil
}

// place makes one mount of the container.
func place(root string, m wire.Mount) error {
	target := filepath.Join(root, m.Target)
	if m.Source == "" {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		return memory(target, m.Options)
	}
	info, err := os.Stat(m.Source)
	if err != nil {
		return fmt.Errorf("mount %s in the container: %w", m.Target, err)
	}
	if !info.IsDir() {
		if err := bindFile(m.Source, target); err != nil {
			return err
		}
		return setReadOnly(target, m.ReadOnly)
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	return bind(m.Source, target, m.ReadOnly)
}

// enter makes a mount the root, and lets go of the old one.
func enter(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	return unix.Unmount(".", unix.MNT_DETACH)
}

// powerless leaves uid 0 without any capability, for good.
func powerless() error {
	for c := range uintptr(64) {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			break // there are no more
		}
	}
	// What could be inherited would come back with exec, as uid 0 is.
	header, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capset(&header, &none[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// cover makes a directory read-only in another process's mount namespace, or ends that.
// It is covered by a read-only mount of itself: the kernel refuses to remount one on
// which somebody has a file open for writing, as the plugin has its lock.
func cover(pid string, ro bool, path string) error {
	if _, err := strconv.Atoi(pid); err != nil {
		return fmt.Errorf("mount: process %q: %w", pid, err)
	}
	ns, err := os.Open("/proc/" + pid + "/ns/mnt")
	if err != nil {
		return err
	}
	defer ns.Close()
	// A thread can only change its mount namespace once it shares its root with no other;
	// it is not used for anything else after that.
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("take the thread apart: %w", err)
	}
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the mount namespace of process %s: %w", pid, err)
	}
	if ro {
		return bind(path, path, true)
	}
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("uncover %s: %w", path, err)
	}
	return nil
}
