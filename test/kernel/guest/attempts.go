package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// attempt is something that a plugin that was taken over would try.
type attempt struct {
	name string
	// confined is the answer where Landlock is on, 0 for success. Where it is off, everything here
	// succeeds that the filter of sockets lets pass: the pod's mounts and the lack of capabilities do not
	// stand in the way.
	confined unix.Errno
	filtered bool
	try      func(p *puppet, node string) error
}

func attempts() []attempt {
	open := func(p *puppet, path string, flags int) error {
		fd, err := p.call(unix.SYS_OPENAT, unix.AT_FDCWD, text0(path), flags|unix.O_CLOEXEC, 0o600)
		if err == nil {
			_, err = p.call(unix.SYS_CLOSE, fd)
		}
		return err
	}
	at := func(path string, flags int) func(*puppet, string) error {
		return func(p *puppet, _ string) error { return open(p, path, flags) }
	}
	socket := func(family, kind, protocol int) func(*puppet, string) error {
		return func(p *puppet, _ string) error {
			fd, err := p.call(unix.SYS_SOCKET, family, kind|unix.SOCK_CLOEXEC, protocol)
			if err == nil {
				_, err = p.call(unix.SYS_CLOSE, fd)
			}
			return err
		}
	}
	return []attempt{
		// What it needs.
		{"make a socket of Unix", 0, false, socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)},
		{"make a socket of netlink", 0, false, socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT)},
		{"list VFIO's nodes", 0, false, at("/dev/vfio/devices", unix.O_RDONLY|unix.O_DIRECTORY)},
		{"list the PCI bus", 0, false, at("/sys/bus/pci/devices", unix.O_RDONLY|unix.O_DIRECTORY)},
		{"write a file for CDI", 0, false, at(cdiDir+"/attempt", unix.O_WRONLY|unix.O_CREAT)},
		{"write a file for kubelet", 0, false, at(pluginsDir+"/attempt", unix.O_WRONLY|unix.O_CREAT)},
		// What it does not.
		{"open a device", unix.EACCES, false, func(p *puppet, node string) error { return open(p, node, unix.O_RDWR) }},
		{"open a device to read", unix.EACCES, false, func(p *puppet, node string) error { return open(p, node, unix.O_RDONLY) }},
		{"open VFIO's container", unix.EACCES, false, at("/dev/vfio/vfio", unix.O_RDWR)},
		{"write elsewhere", unix.EACCES, false, at("/dev/attempt", unix.O_WRONLY|unix.O_CREAT)},
		{"read its own program", unix.EACCES, false, at("/kata-device-plugin", unix.O_RDONLY)},
		{"list the root", unix.EACCES, false, at("/", unix.O_RDONLY|unix.O_DIRECTORY)},
		{"make a directory for CDI", unix.EACCES, false, func(p *puppet, _ string) error {
			_, err := p.call(unix.SYS_MKDIRAT, unix.AT_FDCWD, text0(cdiDir+"/attempted"), 0o700)
			return err
		}},
		{"make a link for kubelet", unix.EACCES, false, func(p *puppet, _ string) error {
			_, err := p.call(unix.SYS_SYMLINKAT, text0("/"), unix.AT_FDCWD, text0(pluginsDir+"/attempted"))
			return err
		}},
		{"make a socket of TCP", unix.EACCES, true, socket(unix.AF_INET, unix.SOCK_STREAM, 0)},
		{"make a socket of Multipath TCP", unix.EACCES, true, socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP)},
		{"make a socket of UDP", unix.EACCES, true, socket(unix.AF_INET, unix.SOCK_DGRAM, 0)},
		{"signal another process", unix.EPERM, false, func(p *puppet, _ string) error {
			_, err := p.call(unix.SYS_KILL, 1, 0)
			return err
		}},
	}
}

// outcome is what became of the attempts.
type outcome struct {
	Errors  map[string]string // by attempt, "" for success
	Threads []string          // of each thread, what it was told when it opened the device
}

// tryAll makes the threads of a process try, and prints the outcome. It is a process of its own,
// since the plugin's parent must not mistake its stops for its end.
func tryAll(pid, node string) (err error) {
	runtime.LockOSThread() // who traces is a thread
	number, err := strconv.Atoi(pid)
	if err != nil {
		return err
	}
	all, err := puppets(number)
	defer func() {
		for _, p := range all {
			err = errors.Join(err, p.release())
		}
	}()
	if err != nil {
		return err
	}
	o := outcome{Errors: map[string]string{}}
	told := func(err error) string {
		if err == nil {
			return ""
		}
		if errno, ok := errors.AsType[unix.Errno](err); ok {
			return unix.ErrnoName(errno)
		}
		return err.Error()
	}
	var open func(*puppet, string) error
	for _, a := range attempts() {
		o.Errors[a.name] = told(a.try(all[0], node))
		if a.name == "open a device" {
			open = a.try
		}
	}
	for _, p := range all {
		o.Threads = append(o.Threads, told(open(p, node)))
	}
	return json.NewEncoder(os.Stdout).Encode(o)
}

// attempted has the running plugin try everything, and holds what the kernel says against what it
// should.
func (s *stage) attempted(confined bool) {
	node := "/dev/vfio/devices/" + cdev(s.plain()[0].ID)
	out, err := exec.Command("/proc/self/exe", "try", strconv.Itoa(s.plugin.cmd.Process.Pid), node).CombinedOutput()
	if err != nil {
		s.fatalf("have the plugin try: %v: %s", err, out)
	}
	var o outcome
	if err := json.Unmarshal(out, &o); err != nil {
		s.fatalf("read what the plugin was told: %v: %s", err, out)
	}
	refused := 0
	for _, a := range attempts() {
		want := ""
		if a.filtered || confined && a.confined != 0 {
			want = unix.ErrnoName(a.confined)
			refused++
		}
		if got, tried := o.Errors[a.name]; !tried || got != want {
			s.errorf("the plugin tries to %s: the kernel says %q, want %q", a.name, got, want)
		}
	}
	for i, got := range o.Threads {
		if got != o.Errors["open a device"] {
			s.errorf("thread %d of the plugin opens %s: the kernel says %q, and to another one %q", i, node, got, o.Errors["open a device"])
		}
	}
	s.notef("the running plugin was made to try %d things, of which %d were to be refused, and to open %s on each of its %d threads",
		len(o.Errors), refused, node, len(o.Threads))
	for _, left := range []string{cdiDir + "/attempt", cdiDir + "/attempted", pluginsDir + "/attempt", pluginsDir + "/attempted"} {
		if err := os.Remove(left); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.errorf("clean up: %v", err)
		}
	}
}
