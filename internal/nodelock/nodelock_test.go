package nodelock_test

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kata-device-plugin/internal/nodelock"
)

const resource = "nvidia.com/gpu"

func release(t *testing.T, l *nodelock.Lock) {
	t.Helper()
	if err := l.Release(); err != nil {
		t.Error(err)
	}
}

func TestTake(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cdi") // it need not exist
	l, err := nodelock.Take(dir, resource, "the first")
	if err != nil {
		t.Fatal(err)
	}
	if !l.Held() {
		t.Error("not held")
	}
	_, err = nodelock.Take(dir, resource, "the second")
	if !errors.Is(err, nodelock.ErrHeld) || !strings.Contains(err.Error(), "held by the first") || !strings.Contains(err.Error(), "kata.nvidia.com-gpu.lock") {
		t.Errorf("got %v", err)
	}
	if other, err := nodelock.Take(dir, "nvidia.com/nvswitch", "the second"); err != nil {
		t.Errorf("another resource: %v", err)
	} else {
		release(t, other)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	again, err := nodelock.Take(dir, resource, "2nd")
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, again)
	_, err = nodelock.Take(dir, resource, "the third")
	if err == nil || !strings.HasSuffix(err.Error(), "held by 2nd") {
		t.Errorf("the longer name of the first is not gone: %v", err)
	}
}

// TestWiped: a lock whose file was removed is not held, and can be taken again.
func TestWiped(t *testing.T) {
	dir := t.TempDir()
	l, err := nodelock.Take(dir, resource, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, l)
	if err := os.Remove(filepath.Join(dir, nodelock.FileName(resource))); err != nil {
		t.Fatal(err)
	}
	if l.Held() {
		t.Error("held without a file")
	}
	again, err := nodelock.Take(dir, resource, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, again)
	if l.Held() || !again.Held() {
		t.Error("the file of the new lock is taken for the old one's")
	}
}

// TestNoDirectory: what is not contention is another error.
func TestNoDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := nodelock.Take(file, resource, "a")
	if err == nil || errors.Is(err, nodelock.ErrHeld) || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
}

// TestSymlink: the lock file is opened by its own name only.
func TestSymlink(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, nodelock.FileName(resource))); err != nil {
		t.Fatal(err)
	}
	if _, err := nodelock.Take(dir, resource, "a"); err == nil {
		t.Error("followed a link")
	}
	if data, _ := os.ReadFile(victim); string(data) != "precious" {
		t.Errorf("the link's target says %q", data)
	}
}

// TestKilledHolder: the kernel releases the lock of a process that is killed.
func TestKilledHolder(t *testing.T) {
	if dir := os.Getenv("HOLD_LOCK_IN"); dir != "" {
		l, err := nodelock.Take(dir, resource, "a child")
		if err != nil {
			t.Fatal(err)
		}
		defer release(t, l)
		os.Stdout.WriteString("held\n")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until killed; select {} would end it, as a deadlock
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledHolder$")
	cmd.Env = append(os.Environ(), "HOLD_LOCK_IN="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("%q %v", line, err)
	}
	if _, err := nodelock.Take(dir, resource, "the parent"); !errors.Is(err, nodelock.ErrHeld) || !strings.Contains(err.Error(), "a child") {
		t.Errorf("while the child lives: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it says that the child was killed
	l, err := nodelock.Take(dir, resource, "the parent")
	if err != nil {
		t.Fatal(err)
	}
	release(t, l)
}
