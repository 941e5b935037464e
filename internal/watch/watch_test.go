package watch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"kata-device-plugin/internal/watch"
)

// TestSettle: one signal a burst, at the end of it, and not later than allowed.
func TestSettle(t *testing.T) {
	const quiet, most = 5 * time.Millisecond, 25 * time.Millisecond
	for _, c := range []struct {
		name string
		in   []int // when events come, in ms
		out  []int // when signals do
	}{
		{"one", []int{0}, []int{5}},
		{"a bind", []int{0, 1, 1, 2}, []int{7}},
		{"two bursts", []int{0, 3, 100, 101}, []int{8, 106}},
		{"without end", []int{0, 4, 8, 12, 16, 20, 24, 28}, []int{25, 33}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				in := make(chan struct{})
				out := watch.Settle(ctx, in, quiet, most)
				began := time.Now()
				go func() {
					for _, at := range c.in {
						<-time.After(time.Until(began.Add(time.Duration(at) * time.Millisecond))) // the bubble's clock
						in <- struct{}{}
					}
				}()
				for _, want := range c.out {
					<-out
					if got := time.Since(began); got != time.Duration(want)*time.Millisecond {
						t.Errorf("signal after %v, want %d ms", got, want)
					}
				}
				<-time.After(time.Second)
				select {
				case <-out:
					t.Error("one signal too many")
				default:
				}
			})
		})
	}
}

// TestSettleEnds: nothing is left running, whichever side ends first.
func TestSettleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := make(chan struct{})
		out := watch.Settle(t.Context(), in, time.Second, time.Second)
		in <- struct{}{}
		close(in)
		for range out {
			t.Error("a signal after the end")
		}
	})
}

// signalled waits for a signal, and drains what the same change caused besides.
func signalled(t *testing.T, w *watch.Watcher, signals <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-signals:
	case <-time.After(10 * time.Second):
		t.Fatalf("no signal when %s", what)
	}
	if err := w.Arm(); err != nil {
		t.Fatal(err)
	}
	for {
		select {
		case <-signals:
		default:
			return
		}
	}
}

// TestDirectories: a directory may come, go and be replaced, with and without somebody
// who holds it.
func TestDirectories(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "vfio", "devices")
	w, err := watch.New(filepath.Dir(dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Arm(); err != nil {
		t.Fatal(err)
	}
	signals := w.Signals(t.Context(), time.Millisecond, 5*time.Millisecond)
	do := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		signalled(t, w, signals, what)
	}
	write := func(name string) error { return os.WriteFile(filepath.Join(dir, name), nil, 0o600) }
	do("the parent is made", os.Mkdir(filepath.Dir(dir), 0o755))
	do("the directory is made", os.Mkdir(dir, 0o755))
	do("a file is made", write("vfio0"))
	do("a file goes", os.Remove(filepath.Join(dir, "vfio0")))
	do("the directory goes", os.Remove(dir))
	for range 10 { // on some file systems the new directory gets the old one's inode
		do("the directory is back", os.Mkdir(dir, 0o755))
		do("a file is made in it", write("vfio0"))
		do("the file goes", os.Remove(filepath.Join(dir, "vfio0")))
		do("the directory goes again", os.Remove(dir))
	}
	do("the directory is back", os.Mkdir(dir, 0o755))
	do("a file is made in it", write("vfio0"))

	held, err := os.Open(dir) // the kernel will not say that the watch has ended
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	do("the last file goes", os.Remove(filepath.Join(dir, "vfio0")))
	do("the held directory goes", os.Remove(dir))
	do("another takes its place", os.Mkdir(dir, 0o755))
	do("a file is made in that", write("vfio1"))
	do("everything goes", os.RemoveAll(filepath.Dir(dir)))
	do("everything is back", os.MkdirAll(dir, 0o755))
}

// TestOneDirectoryTwice: a directory may be at several paths, as when a node mounts one where
// two programs look for it. It is watched, and Arm comes to its end.
func TestOneDirectoryTwice(t *testing.T) {
	parent := t.TempDir()
	dir, link := filepath.Join(parent, "a"), filepath.Join(parent, "b")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Symlink("a", link)); err != nil {
		t.Fatal(err)
	}
	w, err := watch.New(link, dir, filepath.Join(link, "absent"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	signals := w.Signals(t.Context(), time.Millisecond, time.Millisecond)
	for range 3 {
		armed := make(chan error, 1)
		go func() { armed <- w.Arm() }()
		select {
		case err := <-armed:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("it does not end")
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-signals:
	case <-time.After(10 * time.Second):
		t.Error("nothing is noticed")
	}
}
