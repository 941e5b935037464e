package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where the pod's file system is put together.
const podRoot = "/run/pod"

// becomePlugin makes of this process, which is in a mount namespace of its own, what the manifest in
// deploy/ makes of a container: the same mounts at the same places, uid 0 and no capability at all.
func becomePlugin(program string) error {
	runtime.LockOSThread() // capabilities are a thread's
	if err := unix.Mount("pod", podRoot, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount the pod's root: %w", err)
	}
	const readOnly = unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	for _, m := range []struct {
		from, to, fs string
		flags        uintptr
	}{
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"sysfs", "/sys", "sysfs", readOnly}, // the container's own
		{"tmpfs", "/dev", "tmpfs", unix.MS_NOSUID},
		{"/dev/vfio", "/dev/vfio", "", unix.MS_RDONLY},
		{"/var/lib/kubelet/device-plugins", "/var/lib/kubelet/device-plugins", "", 0},
		{"/var/run/cdi", "/var/run/cdi", "", 0},
		{"tmpfs", "/run/kata-device-plugin", "tmpfs", 0},
	} {
		to := podRoot + m.to
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		if m.fs != "" {
			if err := unix.Mount(m.from, to, m.fs, m.flags, ""); err != nil {
				return fmt.Errorf("mount %s in the pod: %w", m.to, err)
			}
			continue
		}
		err := unix.Mount(m.from, to, "", unix.MS_BIND, "")
		if err == nil && m.flags != 0 { // the flags of a bind mount take a second call
			err = unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|m.flags, "")
		}
		if err != nil {
			return fmt.Errorf("mount %s in the pod: %w", m.to, err)
		}
	}
	if err := place(program); err != nil {
		return err
	}
	if err := unix.Mount("", podRoot, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("make the pod's root read-only: %w", err)
	}
	if err := errors.Join(unix.Chroot(podRoot), unix.Chdir("/")); err != nil {
		return fmt.Errorf("enter the pod's root: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	return fmt.Errorf("become %s: %w", program, unix.Exec("/"+filepath.Base(program), []string{"/" + filepath.Base(program)}, nil))
}

// place puts the program into the pod.
func place(program string) error {
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(podRoot, filepath.Base(program)), content, 0o755)
}

// dropCapabilities gives up all capabilities for good: uid 0 would get them back from the bounding
// set at the next exec.
func dropCapabilities() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EINVAL) { // a capability that this kernel does not know
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if _, _, errno := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0); errno != 0 {
		return fmt.Errorf("drop all capabilities: %w", errno)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("allow no new privileges: %w", err)
	}
	return nil
}
