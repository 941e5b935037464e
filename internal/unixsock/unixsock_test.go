package unixsock_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kata-device-plugin/internal/unixsock"
)

// shortDir is a directory whose name leaves room for a socket's. t.TempDir's may not.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestListen(t *testing.T) {
	path := filepath.Join(shortDir(t), "a.sock")
	old := syscall.Umask(0) // the mode must not be the umask's merit
	defer syscall.Umask(old)
	l, err := unixsock.Listen(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := info.Mode(), os.ModeSocket|0o600; got != want {
		t.Errorf("mode %v, want %v", got, want)
	}
	done := make(chan error, 1)
	go func() {
		c, err := net.Dial("unix", path)
		if err == nil {
			_, err = c.Write([]byte("x"))
			c.Close()
		}
		done <- err
	}()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := io.ReadAll(c); err != nil || string(got) != "x" {
		t.Errorf("read %q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); err != nil {
		t.Errorf("the socket's owner has not removed it: %v", err)
	}
}

func TestPathLength(t *testing.T) {
	dir := shortDir(t)
	for _, c := range []struct {
		length int
		ok     bool
	}{{107, true}, {108, false}} {
		path := filepath.Join(dir, strings.Repeat("x", c.length-len(dir)-1))
		l, err := unixsock.Listen(path, slog.New(slog.DiscardHandler))
		if (err == nil) != c.ok {
			t.Errorf("%d bytes: %v", c.length, err)
		}
		if err == nil {
			l.Close()
		} else if !strings.Contains(err.Error(), "108 bytes") || !strings.Contains(err.Error(), "107") {
			t.Errorf("the error does not say how long it is and may be: %v", err)
		}
	}
}

// TestOtherUser needs root, to become somebody else; CI runs it.
func TestOtherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("CI has to run this as root")
		}
		t.Skip("SKIPPED: only root can connect as another user")
	}
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "a.sock")
	var log bytes.Buffer
	l, err := unixsock.Listen(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.Chmod(path, 0o777); err != nil { // let the connection through to Accept
		t.Fatal(err)
	}
	accepted := make(chan net.Conn)
	go func() {
		c, err := l.Accept()
		if err != nil {
			close(accepted)
			return
		}
		accepted <- c
	}()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other")
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, data, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(other, "-test.run=^TestDialAsChild$")
	cmd.Env = []string{"DIAL_AS_CHILD=" + path}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ours, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	c, ok := <-accepted
	if !ok {
		t.Fatal("our own connection was not accepted")
	}
	c.Close()
	l.Close()
	if !strings.Contains(log.String(), "the peer's uid is 65534, ours is 0") {
		t.Errorf("log: %s", log.String())
	}
}

// TestDialAsChild is the other user of TestOtherUser: its connection is closed unread.
func TestDialAsChild(t *testing.T) {
	path := os.Getenv("DIAL_AS_CHILD")
	if path == "" {
		return
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := io.ReadAll(c); err != nil || len(got) > 0 {
		t.Fatalf("read %q, %v", got, err)
	}
}
