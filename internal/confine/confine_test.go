package confine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/confine"
)

// outcome is what the confined child could do, by attempt.
type outcome struct {
	Report  confine.Report
	Failed  string
	Allowed map[string]bool
}

// attempt is something that a confined process tries, and whether it may, from an ABI of
// Landlock on.
type attempt struct {
	name    string
	allowed bool
	abi     int
	try     func(dir string) error
}

func attempts() []attempt {
	return []attempt{
		{"read a file of a readable tree", true, 1, func(d string) error { _, err := os.ReadFile(d + "/read/file"); return err }},
		{"list a readable tree", true, 1, func(d string) error { _, err := os.ReadDir(d + "/read"); return err }},
		{"write into a readable tree", false, 1, func(d string) error { return os.WriteFile(d+"/read/new", nil, 0o600) }},
		{"list a listable tree", true, 1, func(d string) error { _, err := os.ReadDir(d + "/list"); return err }},
		{"look at a file of a listable tree", true, 1, func(d string) error { _, err := os.Lstat(d + "/list/file"); return err }},
		{"open a file of a listable tree", false, 1, func(d string) error { _, err := os.ReadFile(d + "/list/file"); return err }},
		{"open it for writing", false, 1, func(d string) error {
			f, err := os.OpenFile(d+"/list/file", os.O_WRONLY, 0)
			if err == nil {
				f.Close()
			}
			return err
		}},
		{"replace a file of its own", true, 1, func(d string) error {
			return errors.Join(os.WriteFile(d+"/write/aside", []byte("x"), 0o600), os.Rename(d+"/write/aside", d+"/write/file"), os.Remove(d+"/write/file"))
		}},
		{"talk on a socket of its own", true, 1, func(d string) error {
			l, err := net.Listen("unix", d+"/write/s")
			if err != nil {
				return err
			}
			defer l.Close()
			c, err := net.Dial("unix", d+"/write/s")
			if err == nil {
				c.Close()
			}
			return err
		}},
		{"talk to a socket that was there before", true, 1, func(d string) error {
			c, err := net.Dial("unix", d+"/write/kubelet.sock")
			if err == nil {
				c.Close()
			}
			return err
		}},
		{"talk to an abstract socket of another process", false, 6, func(d string) error {
			c, err := net.Dial("unix", "@"+d)
			if err == nil {
				c.Close()
			}
			return err
		}},
		{"make a device node", false, 1, func(d string) error { return unix.Mknod(d+"/write/null", unix.S_IFCHR|0o600, 0) }},
		{"read another file", false, 1, func(string) error { _, err := os.ReadFile("/etc/passwd"); return err }},
		{"list another directory", false, 1, func(string) error { _, err := os.ReadDir("/etc"); return err }},
		{"start a program", false, 1, func(string) error { return exec.Command("/proc/self/exe", "-test.list=^$").Run() }},
		{"listen on TCP", false, 4, func(string) error {
			lc := net.ListenConfig{}
			lc.SetMultipathTCP(false)
			l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
			if err == nil {
				l.Close()
			}
			return err
		}},
		socket("talk to the kernel by netlink", true, unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE),
		socket("make a socket of TCP", false, unix.AF_INET, unix.SOCK_STREAM, 0),
		socket("make a socket of Multipath TCP", false, unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_MPTCP),
		socket("make a socket of UDP", false, unix.AF_INET, unix.SOCK_DGRAM, 0),
		socket("make a socket of vsock", false, unix.AF_VSOCK, unix.SOCK_STREAM, 0),
		socket("make a socket of packets", false, unix.AF_PACKET, unix.SOCK_DGRAM, 0),
		{"make a pair of sockets", true, 1, func(string) error { return pair(unix.AF_UNIX) }},
		{"make a pair of sockets of another family", false, 1, func(string) error { return pair(unix.AF_TIPC) }},
		{"make a socket on every thread", false, 1, func(string) error {
			for range 20 {
				done := make(chan error)
				go func() {
					runtime.LockOSThread() // and never unlocked: the thread ends
					done <- open(unix.AF_INET, unix.SOCK_DGRAM, 0)
				}()
				if err := <-done; !errors.Is(err, fs.ErrPermission) {
					return err
				}
			}
			return fs.ErrPermission
		}},
		{"make an io_uring", false, 1, func(string) error {
			var parameters [120]byte
			_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)), 0)
			if errno != 0 {
				return errno
			}
			return nil
		}},
	}
}

// socket tries to make one.
func socket(name string, allowed bool, family, kind, protocol int) attempt {
	return attempt{name, allowed, 1, func(string) error { return open(family, kind, protocol) }}
}

func open(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

func pair(family int) error {
	fds, err := unix.Socketpair(family, unix.SOCK_SEQPACKET, 0)
	if err == nil {
		err = errors.Join(unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return err
}

// TestProcess confines a child, and looks what it can still do.
func TestProcess(t *testing.T) {
	if dir := os.Getenv("CONFINE_CHILD"); dir != "" {
		child(dir)
		return
	}
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, sub := range []string{"read", "list", "write"} {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, sub), 0o755), os.WriteFile(filepath.Join(dir, sub, "file"), []byte("x"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(dir, "write", "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	abstract, err := net.Listen("unix", "@"+dir)
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestProcess$")
	cmd.Env = append(os.Environ(), "CONFINE_CHILD="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got outcome
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.Failed != "" {
		t.Fatal(got.Failed)
	}
	if got.Report.ABI == 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("the kernel of CI has to have Landlock")
		}
		t.Skip("SKIPPED: this kernel has no Landlock")
	}
	t.Logf("Landlock ABI %d", got.Report.ABI)
	if !got.Report.Sockets || got.Report.Complete != (got.Report.ABI >= 4) {
		t.Errorf("complete: %v, sockets: %v, %s", got.Report.Complete, got.Report.Sockets, got.Report.Why)
	}
	for _, a := range attempts() {
		if got.Report.ABI < a.abi {
			continue
		}
		if got.Allowed[a.name] != a.allowed {
			t.Errorf("%s: allowed %v, want %v", a.name, got.Allowed[a.name], a.allowed)
		}
	}
}

func child(dir string) {
	o := outcome{Allowed: map[string]bool{}}
	var err error
	o.Report, err = confine.Process(confine.Access{
		Read:  []string{filepath.Join(dir, "read")},
		List:  []string{filepath.Join(dir, "list"), filepath.Join(dir, "absent")},
		Write: []string{filepath.Join(dir, "write")},
	})
	if err != nil {
		o.Failed = err.Error()
	}
	for _, a := range attempts() {
		err := a.try(dir)
		o.Allowed[a.name] = !errors.Is(err, fs.ErrPermission)
	}
	if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
		os.Stdout.WriteString(err.Error()) // which is no JSON, and fails the parent
	}
}
