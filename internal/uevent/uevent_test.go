package uevent

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// alone gives the test a network namespace of its own. Its thread is never unlocked, so it
// ends with the test, and so does the namespace. A subtest is on another thread.
func alone(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("CI has to make a network namespace: %v", err)
		}
		t.Skipf("SKIPPED: no network namespace can be made: %v", err)
	}
}

// announce has the kernel announce a device of the subsystem misc once more: one of a kind
// that a look reads, which interfaces that are no device's are not.
func announce(t *testing.T) {
	t.Helper()
	all, err := filepath.Glob("/sys/class/misc/*/uevent")
	if err != nil || len(all) == 0 {
		t.Fatalf("there is no device to be announced: %v", err)
	}
	if err := os.WriteFile(all[0], []byte("change"), 0); err != nil {
		t.Fatalf("have a device announced: %v", err)
	}
}

// forge sends a message to the kernel's group as a process with privileges can.
func forge(t *testing.T, msg string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, []byte(msg), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: kernelGroup}); err != nil {
		t.Fatal(err)
	}
}

// listening opens a socket whose reader does not wait for ever.
func listening(t *testing.T, buffer int) *socket {
	t.Helper()
	s, err := open(buffer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.file.Close() })
	if err := s.file.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSender: only the kernel is listened to.
func TestSender(t *testing.T) {
	alone(t)
	s := listening(t, receiveBuffer)
	forge(t, message("add@/devices/virtual/net/br0", "ACTION=add", "SUBSYSTEM=net"))
	if tells, err := s.next(); tells || err != nil {
		t.Errorf("a forged message: %v, %v", tells, err)
	}
	announce(t)
	for {
		tells, err := s.next()
		if err != nil {
			t.Fatalf("the kernel's message: %v", err)
		}
		if tells {
			break
		}
	}
}

// TestLost: announcements that were lost tell to look again, and they are not the end.
func TestLost(t *testing.T) {
	alone(t)
	s := listening(t, 1)
	for range 20 {
		announce(t)
	}
	if tells, err := s.next(); !tells || err != nil {
		t.Errorf("after an overflow: %v, %v", tells, err)
	}
	if _, err := s.next(); err != nil { // one that did fit
		t.Error(err)
	}
}

// TestSignals: an announcement is a signal, garbage is not the end, and nothing is left
// behind.
func TestSignals(t *testing.T) {
	alone(t)
	before := sockets(t)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		signals, err := Signals(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if n := sockets(t); n != before+1 {
			t.Errorf("%d sockets, want one more than %d", n, before)
		}
		for _, garbage := range []string{"\x00", "=\x00=\x00", "libudev\x00", string(make([]byte, 3*messageSize))} {
			forge(t, garbage)
		}
		announce(t)
		wait(t, signals, true)
		announce(t)
		wait(t, signals, true)
		cancel()
		for range signals { // the last of it, and then the end
		}
		if n := sockets(t); n != before {
			t.Errorf("%d sockets after the end, %d before", n, before)
		}
	}
}

// TestEnded: a context that has ended already.
func TestEnded(t *testing.T) {
	before := sockets(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	signals, err := Signals(ctx)
	if err != nil {
		t.Fatal(err)
	}
	wait(t, signals, false)
	if n := sockets(t); n != before {
		t.Errorf("%d sockets after the end, %d before", n, before)
	}
}

func wait(t *testing.T, signals <-chan struct{}, want bool) {
	t.Helper()
	select {
	case _, ok := <-signals:
		if ok != want {
			t.Fatalf("a signal: %v, want %v", ok, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nothing in 10 s")
	}
}

// sockets counts the open sockets of the process.
func sockets(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && len(target) > 7 && target[:7] == "socket:" {
			n++
		}
	}
	return n
}
