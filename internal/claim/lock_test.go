package claim_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/claim"
)

// TestLock: of all goroutines of two stores, one at a time has the lock.
func TestLock(t *testing.T) {
	dir := scratch(t)
	stores := []*claim.Store{open(t, dir), open(t, dir)}
	var inside, total atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 10 {
				unlock, err := stores[i%2].Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d have the lock", n)
				}
				if err := stores[i%2].Put(record(uidA, i)); err != nil {
					t.Error(err)
				}
				total.Add(1)
				inside.Add(-1)
				if err := unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := total.Load(); n != 80 {
		t.Errorf("%d times", n)
	}
}

// TestLockEnds: the wait ends with the context, whoever has the lock.
func TestLockEnds(t *testing.T) {
	s, dir := locked(t)
	for name, waiting := range map[string]*claim.Store{"same process": s, "another": open(t, dir)} {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errors.New("enough"))
		if _, err := waiting.Lock(ctx); err == nil || !strings.Contains(err.Error(), "enough") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	free := open(t, scratch(t))
	for range 20 {
		if _, err := free.Lock(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	lock(t, free)()
}

// TestUnlocked: nothing is written without the lock. To unlock twice does nothing to the next
// one who has it.
func TestUnlocked(t *testing.T) {
	s := open(t, scratch(t))
	check := func() {
		t.Helper()
		for name, err := range map[string]error{
			"put": s.Put(record(uidA, 1)), "remove": s.Remove(uidA, start), "forget": s.Forget(start),
			"quarantine": s.Quarantine(uidA), "discard": s.Discard(uidA),
		} {
			if !errors.Is(err, claim.ErrNotLocked) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	check()
	first := lock(t, s)
	first()
	check()
	second := lock(t, s)
	first()
	must(t, s.Put(record(uidA, 1)))
	second()
	check()
}

// TestLockReplaced: whoever loses the lock's file writes nothing more, and who waits for it
// has the new one.
func TestLockReplaced(t *testing.T) {
	dir := scratch(t)
	a, b := open(t, dir), open(t, dir)
	unlockA := lock(t, a)
	must(t, a.Put(record(uidA, 1)))
	got := make(chan error)
	go func() {
		unlock, err := b.Lock(t.Context())
		if err == nil {
			err = errors.Join(b.Put(record(uidB, 1)), unlock())
		}
		got <- err
	}()
	must(t, os.Remove(filepath.Join(dir, "lock")))
	must(t, <-got)
	if err := a.Put(record(uidA, 2)); !errors.Is(err, claim.ErrNotLocked) || !strings.Contains(err.Error(), "removed or replaced") {
		t.Errorf("after the file was replaced: %v", err)
	}
	wantRecord(t, a, record(uidA, 1))
	unlockA()
	defer lock(t, a)()
	must(t, a.Put(record(uidA, 2)))
}

// TestLockFile: what is no lock file is an error at once.
func TestLockFile(t *testing.T) {
	dir := scratch(t)
	s := open(t, dir)
	path := filepath.Join(dir, "lock")
	victim := filepath.Join(dir, "victim")
	for name, lay := range map[string]func() error{
		"link":      func() error { return os.Symlink(victim, path) },
		"FIFO":      func() error { return unix.Mkfifo(path, 0o600) },
		"directory": func() error { return os.Mkdir(path, 0o700) },
	} {
		must(t, lay())
		if _, err := s.Lock(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, os.Remove(path))
	}
	if _, err := os.Lstat(victim); !os.IsNotExist(err) {
		t.Errorf("the link was followed: %v", err)
	}
	lock(t, s)()
}

// TestSweep: what a killed writer left goes under the lock, and not before: it may be that of
// one who lives.
func TestSweep(t *testing.T) {
	dir := scratch(t)
	left := filepath.Join(dir, "."+uidA+".json8273645")
	keep := []string{"." + uidA + ".json12.x", ".other", "." + uidB + ".jsonx"}
	for _, name := range append([]string{filepath.Base(left)}, keep...) {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	s := open(t, dir)
	if _, err := os.Stat(left); err != nil {
		t.Errorf("gone without the lock: %v", err)
	}
	lock(t, s)()
	wantNames(t, dir, append(keep[:1:1], "."+uidB+".jsonx", ".other")...)
}

// TestSynced: the directory is opened, as it has to be for a sync, after the last name in it
// has changed. What the kernel does then cannot be seen without cutting the power.
func TestSynced(t *testing.T) {
	s, dir := locked(t)
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"put", func() error { return s.Put(record(uidA, 1)) }},
		{"put again", func() error { return s.Put(record(uidA, 2)) }},
		{"remove", func() error { return s.Remove(uidA, start) }},
		{"remove again", func() error { return s.Remove(uidA, start.Add(1)) }},
		{"forget", func() error { return s.Forget(start.Add(2)) }},
		{"quarantine", func() error { place(t, dir, uidA, nil); return s.Quarantine(uidA) }},
		{"discard", func() error { return s.Discard(uidA) }},
	} {
		events := watch(t, dir)
		must(t, c.do())
		if last, changed := events(); last != unix.IN_OPEN || !changed {
			t.Errorf("%s: the last is %#x, changed %v", c.name, last, changed)
		}
	}
}

// watch returns a function that says what happened to a directory last, opened or changed, and
// whether it changed at all.
func watch(t *testing.T, dir string) func() (last uint32, changed bool) {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	const changes = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_OPEN|changes)
	must(t, err)
	return func() (last uint32, changed bool) {
		t.Helper()
		data := make([]byte, 1<<16)
		n, err := unix.Read(fd, data)
		must(t, errors.Join(err, unix.Close(fd)))
		for data = data[:n]; len(data) > 0; {
			mask, name := binary.NativeEndian.Uint32(data[4:]), binary.NativeEndian.Uint32(data[12:])
			if mask&changes != 0 || mask&unix.IN_ISDIR != 0 {
				last = mask & (changes | unix.IN_OPEN)
			}
			changed = changed || mask&changes != 0
			data = data[16+name:]
		}
		return last, changed
	}
}

// child starts this test anew in another process, which finds the directory in its environment.
func child(t *testing.T, dir string, more ...string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(append(os.Environ(), "CLAIMS_IN="+dir), more...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	_, err = cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	return cmd, bufio.NewReader(out)
}

// untilKilled waits in a child, or until its parent has gone. To select {} would end it: nothing else
// goes on in it, which Go takes for a deadlock.
func untilKilled() { _, _ = os.Stdin.Read(make([]byte, 1)) }

// TestKilledHolder: the kernel releases the lock of a process that is killed.
func TestKilledHolder(t *testing.T) {
	if dir := os.Getenv("CLAIMS_IN"); dir != "" {
		defer lock(t, open(t, dir))()
		fmt.Println("held")
		untilKilled()
		return
	}
	dir := scratch(t)
	s := open(t, dir)
	cmd, out := child(t, dir)
	if line, err := out.ReadString('\n'); line != "held\n" {
		t.Fatal(line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := s.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while the child lives: %v", err)
	}
	got := make(chan error)
	go func() {
		unlock, err := s.Lock(t.Context())
		if err == nil {
			err = unlock()
		}
		got <- err
	}()
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // it says that the child was killed
	must(t, <-got)
}

// TestTryLock: who does not wait is told that somebody has it, here or in another process.
func TestTryLock(t *testing.T) {
	if dir := os.Getenv("CLAIMS_IN"); dir != "" {
		defer lock(t, open(t, dir))()
		fmt.Println("held")
		untilKilled()
		return
	}
	dir := scratch(t)
	s, other := open(t, dir), open(t, dir)
	unlock, err := s.TryLock()
	must(t, err)
	for _, busy := range []*claim.Store{s, other} {
		if _, err := busy.TryLock(); !errors.Is(err, claim.ErrBusy) {
			t.Errorf("it is held: %v", err)
		}
	}
	must(t, s.Put(record(uidA, 1)))
	must(t, unlock())
	cmd, out := child(t, dir)
	if _, err := out.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TryLock(); !errors.Is(err, claim.ErrBusy) {
		t.Errorf("another process has it: %v", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // which was killed
	unlock, err = s.TryLock()
	must(t, err)
	must(t, unlock())
}

// TestDirectoryRemoved: somebody removes everything, and the next lock makes the directory anew, as
// private as it was.
func TestDirectoryRemoved(t *testing.T) {
	dir := filepath.Join(scratch(t), "plugin", "claims")
	s := open(t, dir)
	for _, take := range []func() (func() error, error){s.TryLock, func() (func() error, error) { return s.Lock(t.Context()) }} {
		must(t, os.RemoveAll(filepath.Dir(dir)))
		unlock, err := take()
		must(t, err)
		must(t, s.Put(record(uidA, 1)))
		must(t, unlock())
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v %v", info, err)
		}
	}
}
