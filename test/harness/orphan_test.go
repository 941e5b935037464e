package harness_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/test/harness"
)

// victimVariable tells a process that it is the one that TestTestKilled kills.
const victimVariable = "HARNESS_TEST_VICTIM"

// TestTestKilled: a test process that is killed leaves no plugin.
func TestTestKilled(t *testing.T) {
	if os.Getenv(victimVariable) != "" {
		p := shell(t, forever)
		fmt.Println(p.PID())
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the process that is to kill this one
		return
	}
	victim := exec.Command(os.Args[0], "-test.run=^TestTestKilled$")
	// What it has in temporary directories it cannot remove.
	victim.Env = append(os.Environ(), victimVariable+"=1", "TMPDIR="+t.TempDir())
	victim.Stderr = os.Stderr
	if _, err := victim.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("wait for the victim's plugin: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0) // while it lives, so that its number cannot mean another later
	if err != nil {
		t.Fatalf("open process %d: %v", pid, err)
	}
	defer unix.Close(fd)
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait() // it says that it was killed
	if !ends(t, fd) {
		t.Errorf("plugin %d goes on", pid)
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// ends waits for the end of a process.
func ends(t *testing.T, pidfd int) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int((20 * time.Second).Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatalf("wait for a process to end: %v", err)
		}
		return n > 0
	}
}

type started struct {
	plugin *harness.Plugin
	thread int
}

// startAndEnd starts a plugin on a thread that ends then.
func startAndEnd(t *testing.T, starts chan<- started) {
	runtime.LockOSThread() // and never unlocked, so that the thread ends with this function
	if unix.Gettid() == os.Getpid() {
		defer runtime.UnlockOSThread() // the process's first thread never does: take another
		done := make(chan started)
		go startAndEnd(t, done)
		if s, ok := <-done; ok {
			starts <- s
		}
		close(starts)
		return
	}
	defer close(starts) // also where shell ends the test
	starts <- started{shell(t, forever), unix.Gettid()}
}

// TestThreadEnds: a plugin lives on when the thread ends on which it was started.
func TestThreadEnds(t *testing.T) {
	t.Parallel()
	starts := make(chan started)
	go startAndEnd(t, starts)
	s, ok := <-starts
	if !ok {
		return
	}
	task := filepath.Join("/proc/self/task", strconv.Itoa(s.thread))
	for { // the kernel tells nobody of a thread's end
		if _, err := os.Stat(task); errors.Is(err, os.ErrNotExist) {
			break
		}
		runtime.Gosched()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if code, _, err := s.plugin.Terminate(ctx); code != 3 || err != nil {
		t.Errorf("got code %d, %v", code, err)
	}
}
