package lookout_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"kata-device-plugin/internal/lookout"
)

// The tests here watch no directory: the kernel's events do not keep to a test's clock.

// at wants a reason to look at a time since the start.
func at(t *testing.T, l *lookout.Lookout, start time.Time, within, since time.Duration, depth lookout.Depth) {
	t.Helper()
	want(t.Context(), t, l, within, depth)
	if got := time.Since(start); got != since {
		t.Fatalf("after %v, want %v", got, since)
	}
}

// signal is a source of events that a test makes.
func signal(open func() (<-chan struct{}, error)) []lookout.Signal {
	return []lookout.Signal{{Name: "a source", Open: func(context.Context) (<-chan struct{}, error) { return open() }}}
}

// TestClock: everything is looked at when it is time, and what changed when somebody says so.
func TestClock(t *testing.T) {
	n := newNode(t)
	synctest.Test(t, func(t *testing.T) {
		l := lookout.New(n.config)
		defer l.Close()
		start := time.Now()
		at(t, l, start, time.Hour, 0, lookout.Full)
		at(t, l, start, time.Hour, 30*time.Second, lookout.Full)
		at(t, l, start, 10*time.Second, 40*time.Second, lookout.Glance)
		at(t, l, start, 0, 40*time.Second, lookout.Glance)
		at(t, l, start, time.Hour, 60*time.Second, lookout.Full)
	})
}

// TestMissingEvents: a source that cannot be opened is tried again at each look, and looks come
// each second; one that ends is opened again.
func TestMissingEvents(t *testing.T) {
	n := newNode(t)
	synctest.Test(t, func(t *testing.T) {
		var told []string
		n.config.Report = func(what string, err error) {
			if err != nil {
				what = err.Error()
			}
			told = append(told, what)
		}
		var source chan struct{}
		opened := 0
		n.config.Signals = signal(func() (<-chan struct{}, error) {
			opened++
			if opened < 3 || opened == 5 {
				return nil, errors.New("no buffer space available")
			}
			source = make(chan struct{})
			return source, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		l := lookout.New(n.config)
		defer l.Close()
		start := time.Now()
		for _, c := range []struct {
			since time.Duration
			told  string
		}{
			{0, "listen to a source: no buffer space available"}, {time.Second, "listen to a source: no buffer space available"},
			{2 * time.Second, "events from the kernel"}, {32 * time.Second, "events from the kernel"},
		} {
			told = nil
			how, ok := l.Wait(ctx, time.Hour)
			if !ok || how != lookout.Full || time.Since(start) != c.since || len(told) != 1 || told[0] != c.told {
				t.Fatalf("after %v: depth %d, %v, told %q; want %+v", time.Since(start), how, ok, told, c)
			}
		}
		close(source)
		synctest.Wait()
		if how, _ := l.Wait(ctx, time.Second); how != lookout.Glance || opened != 4 {
			t.Errorf("depth %d, opened %d times", how, opened)
		}
		source <- struct{}{}
		if how, _ := l.Wait(ctx, time.Second); how != lookout.Glance || time.Since(start) != 33*time.Second+5*time.Millisecond {
			t.Errorf("depth %d after %v", how, time.Since(start))
		}
		close(source)
		synctest.Wait()
		start = time.Now()
		if how, _ := l.Wait(ctx, time.Second); how != lookout.Glance || opened != 5 {
			t.Errorf("depth %d, opened %d times", how, opened)
		}
		// Events are missing since then, although the next look was to be later.
		if how, _ := l.Wait(ctx, time.Hour); how != lookout.Full || opened != 6 || time.Since(start) != 2*time.Second {
			t.Errorf("depth %d, opened %d times, after %v", how, opened, time.Since(start))
		}
	})
}

// TestBusySource: of a source without end looks take some tenth of the time, and come all the
// same however long they take.
func TestBusySource(t *testing.T) {
	for _, c := range []struct {
		takes       time.Duration
		least, most int // looks in a minute
	}{
		{20 * time.Millisecond, 250, 345},
		{2 * time.Second, 18, 32},
	} {
		n := newNode(t)
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			source := make(chan struct{})
			n.config.Signals = signal(func() (<-chan struct{}, error) { return source, nil })
			go func() {
				tick := time.NewTicker(10 * time.Millisecond) // of the bubble's clock
				defer tick.Stop()
				for {
					select {
					case <-tick.C:
					case <-ctx.Done():
						return
					}
					select {
					case source <- struct{}{}:
					case <-ctx.Done():
					}
				}
			}()
			l := lookout.New(n.config)
			defer l.Close()
			looks := 0
			for start := time.Now(); time.Since(start) < time.Minute; looks++ {
				if how, ok := l.Wait(ctx, time.Hour); !ok || how < lookout.Glance {
					t.Fatalf("depth %d, %v", how, ok)
				}
				<-time.After(c.takes)
				l.Done()
			}
			if looks < c.least || looks > c.most {
				t.Errorf("%d looks of %v in a minute", looks, c.takes)
			}
		})
	}
}

// TestBackOff: what cannot be read is looked at again, soon at first; an event starts that anew.
func TestBackOff(t *testing.T) {
	n := newNode(t)
	class := filepath.Join(n.roots.Sys, "class", "vfio-dev")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		source := make(chan struct{})
		n.config.Signals = signal(func() (<-chan struct{}, error) { return source, nil })
		l := lookout.New(n.config)
		defer l.Close()
		last := time.Now()
		look := func(after time.Duration, depth lookout.Depth, partial bool) {
			t.Helper()
			how, ok := l.Wait(ctx, time.Hour)
			if got := time.Since(last); !ok || how != depth || got != after {
				t.Fatalf("depth %d, %v, after %v; want %d after %v", how, ok, got, depth, after)
			}
			last = time.Now()
			<-time.After(time.Millisecond) // a look takes its time, which counts
			if s := l.Observe(how); s.Partial() != partial || len(bound(s)) < 8 {
				t.Fatalf("partial: %v, found %v", s.Partial(), bound(s))
			}
		}
		look(0, lookout.Full, false)
		must(t, os.Rename(class, class+".aside"))
		must(t, os.WriteFile(class, nil, 0o600)) // cannot be listed, and is not absent
		look(30*time.Second, lookout.Full, true)
		for _, ms := range []int{10, 20, 40, 80, 160, 320} {
			look(time.Duration(ms)*time.Millisecond, lookout.Glance, true)
		}
		source <- struct{}{}
		look(6*time.Millisecond, lookout.Glance, true) // one is the last look's
		look(10*time.Millisecond, lookout.Glance, true)
		must(t, os.Remove(class))
		must(t, os.Rename(class+".aside", class))
		look(20*time.Millisecond, lookout.Glance, false)
		how, _ := l.Wait(ctx, time.Hour)
		if since := time.Since(last); how != lookout.Full || since < 29*time.Second {
			t.Errorf("depth %d after %v", how, since)
		}
	})
}

// asking calls Refresh, and returns what tells of its return.
func asking(ctx context.Context, l *lookout.Lookout) <-chan error {
	done := make(chan error, 1)
	go func() { done <- l.Refresh(ctx) }()
	synctest.Wait()
	return done
}

// waits wants a call not to have returned.
func waits(t *testing.T, done <-chan error, when string) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-done:
		t.Errorf("it returned %s: %v", when, err)
	default:
	}
}

// TestRefresh: whoever asks for a full look waits for the end of one that began after that. One
// is for all who wait.
func TestRefresh(t *testing.T) {
	n := newNode(t)
	synctest.Test(t, func(t *testing.T) {
		l := lookout.New(n.config)
		defer l.Close()
		want(t.Context(), t, l, time.Hour, lookout.Full)
		late := asking(t.Context(), l)
		l.Done()
		waits(t, late, "with the look that was under way")
		more := []<-chan error{late, asking(t.Context(), l), asking(t.Context(), l)}
		ctx, cancel := context.WithCancel(t.Context())
		impatient := asking(ctx, l)
		want(t.Context(), t, l, time.Hour, lookout.Full)
		for _, done := range append(more, impatient) {
			waits(t, done, "before the look had ended")
		}
		cancel()
		if err := <-impatient; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		l.Done()
		for _, done := range more {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}

		careless := asking(t.Context(), l)
		want(t.Context(), t, l, time.Hour, lookout.Full)
		want(t.Context(), t, l, time.Second, lookout.Glance) // nobody said that the look was done
		if err := <-careless; err != nil {
			t.Error(err)
		}

		ctx, cancel = context.WithCancel(t.Context())
		alone := asking(ctx, l)
		cancel()
		if err := <-alone; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestEnd: what comes with the end is no news.
func TestEnd(t *testing.T) {
	n := newNode(t)
	synctest.Test(t, func(t *testing.T) {
		l := lookout.New(n.config)
		defer l.Close()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 20 { // one of several reasons is as good as another
			l.Poke()
			if how, ok := l.Wait(ctx, 0); ok {
				t.Fatalf("a reason to look after the end: %d", how)
			}
		}
	})
}
