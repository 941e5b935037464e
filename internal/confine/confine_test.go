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
	"testing"

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
	}
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
	if got.Report.Complete != (got.Report.ABI >= 4) {
		t.Errorf("complete: %v", got.Report.Complete)
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
