package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"kata-device-plugin/test/peer/wire"
)

// mounts makes the node's view of the file system. What programs of a node write to is
// the node's own; the rest is the host's, read-only, so that nothing can be left there.
func mounts(s wire.Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("take the mounts out of the host's hands: %w", err)
	}
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	before, err := mountPoints()
	if err != nil {
		return err
	}
	// /run and /dev are built aside, as long as everything they are made of can be seen.
	aside := filepath.Join(s.State, "aside")
	steps := []func() error{
		func() error { return makeRun(s, filepath.Join(aside, "run")) },
		func() error { return makeDev(s, filepath.Join(aside, "dev")) },
		func() error { return bind(filepath.Join(s.State, "lib"), "/var/lib", false) },
		func() error { return bind(filepath.Join(s.State, "log"), "/var/log", false) },
		func() error { return bind(filepath.Join(s.State, "etc/hosts"), "/etc/hosts", false) },
		func() error { return bind(filepath.Join(s.State, "etc/resolv.conf"), "/etc/resolv.conf", false) },
		func() error { return move(filepath.Join(aside, "run"), "/run") },
		func() error { return move(filepath.Join(aside, "dev"), "/dev") },
		func() error { return memory("/tmp", "mode=1777") },
		func() error { return makeProc(s) },
		func() error { return protect(before) },
		// kubelet wants a shared tree for its volumes; it is shared only in here.
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "") },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("make the node's mounts: %w", err)
		}
	}
	return nil
}

// mountPoints are the places of all mounts that can be seen.
func mountPoints() ([]string, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list the host's mounts: %w", err)
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // proc_pid_mountinfo(5): the fifth is the mount point
		if len(fields) < 5 {
			return nil, fmt.Errorf("list the host's mounts: %q", line)
		}
		all = append(all, fields[4])
	}
	return all, nil
}

// protect makes what is the host's read-only. Not what the node has of its own by now, and
// not control groups, of which the node has its own below the host's.
func protect(mounts []string) error {
	for _, dir := range mounts {
		own := slices.ContainsFunc([]string{"/run", "/dev", "/tmp", "/proc", "/var/lib", "/var/log", "/sys/fs/cgroup"}, func(own string) bool {
			return dir == own || strings.HasPrefix(dir, own+"/")
		})
		if own {
			continue
		}
		if err := readOnly(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// makeRun is /run with the node's own things and places for what programs make there.
func makeRun(s wire.Spec, dir string) error {
	if err := memory(dir, "mode=755"); err != nil {
		return err
	}
	at := func(p string) string { return filepath.Join(dir, filepath.Base(p)) }
	for _, d := range []string{at(wire.StateDir), at(wire.MachineDir), at(wire.ProgramDir), at("cdi"), at("lock")} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	err := bind(s.State, at(wire.StateDir), false)
	if s.Machine != "" {
		err = errors.Join(err, bind(s.Machine, at(wire.MachineDir), false))
	}
	for name, path := range s.Programs {
		err = errors.Join(err, bindFile(path, filepath.Join(at(wire.ProgramDir), name)))
	}
	if s.CDISize != "" {
		err = errors.Join(err, memory(at("cdi"), "mode=755,size="+s.CDISize))
	}
	return err
}

// makeDev has the nodes that programs take for granted, and the machine's VFIO and RDMA.
func makeDev(s wire.Spec, dir string) error {
	if err := memory(dir, "mode=755"); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty", "kmsg"} {
		err := bindFile(filepath.Join("/dev", name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, d := range []string{"pts", "shm", "vfio"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	err := unix.Mount("devpts", filepath.Join(dir, "pts"), "devpts", 0, "newinstance,ptmxmode=0666,mode=620")
	if err != nil {
		return fmt.Errorf("mount devpts: %w", err)
	}
	for name, to := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"} {
		err = errors.Join(err, os.Symlink(to, filepath.Join(dir, name)))
	}
	err = errors.Join(err, memory(filepath.Join(dir, "shm"), "mode=1777"))
	if s.Machine == "" {
		return err
	}
	err = errors.Join(err, bind(filepath.Join(s.Machine, "dev/vfio"), filepath.Join(dir, "vfio"), false))
	// The kernel makes the directory with the first RDMA device: a machine without any has none.
	rdma := filepath.Join(s.Machine, "dev/infiniband")
	if _, missing := os.Stat(rdma); errors.Is(missing, fs.ErrNotExist) {
		return err
	}
	to := filepath.Join(dir, "infiniband")
	return errors.Join(err, os.Mkdir(to, 0o755), bind(rdma, to, false))
}

// makeProc is /proc of the new process namespace. kubelet sets some values of the
// kernel, which has no namespaces for them: it gets files in their place. So does what
// says which boot this is.
func makeProc(s wire.Spec) error {
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	// The rest is read-only: what kubelet sets and nobody has thought of is to fail.
	if err := bind("/proc/sys", "/proc/sys", true); err != nil {
		return err
	}
	for _, name := range s.Sysctls {
		data, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = substitute(name, data)
		}
		if err != nil {
			return fmt.Errorf("keep kubelet from %s: %w", name, err)
		}
	}
	if s.BootID == "" {
		return nil
	}
	return substitute("kernel/random/boot_id", []byte(s.BootID))
}

// substitute puts a file in the place of one of the kernel's values.
func substitute(name string, data []byte) error {
	file := filepath.Join(wire.StateDir, "sysctl", name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return err
	}
	return bind(file, filepath.Join("/proc/sys", name), false)
}

func memory(dir, options string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		return fmt.Errorf("mount tmpfs on %s: %w", dir, err)
	}
	return nil
}

func move(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the mount %s to %s: %w", from, to, err)
	}
	return nil
}

func bind(from, to string, ro bool) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s to %s: %w", from, to, err)
	}
	if ro {
		return readOnly(to)
	}
	return nil
}

// bindFile makes the file that is to be mounted on.
func bindFile(from, to string) error {
	if _, err := os.Stat(from); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), bind(from, to, false))
}

func readOnly(dir string) error { return setReadOnly(dir, true) }

// setReadOnly changes this one mount, not the file system behind it, and leaves its
// other flags as they are.
func setReadOnly(dir string, ro bool) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("read the flags of the mount %s: %w", dir, err)
	}
	flags := uintptr(st.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME)
	if ro {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|flags, ""); err != nil {
		return fmt.Errorf("remount %s: %w", dir, err)
	}
	return nil
}
