package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// How long nothing may happen after a clock step, and how much of that time the plugin may use.
const (
	stillness = 2 * time.Second
	idle      = 500 * time.Millisecond // a loop that does not rest uses all of it
)

// clockSteps sets the wall clock under the running plugin, as a time server does on a machine whose
// clock was wrong. Nothing is to follow from that: changes are announced as before, and with no more
// lines in the log; and when nothing changes the plugin does nothing.
func clockSteps(s *stage) {
	begun := time.Now()
	wall := begun.Round(0) // without the reading of the clock that nobody can set
	defer func() { s.must(setClock(wall.Add(time.Since(begun)))) }()
	lines := s.changes("before any step")
	for _, step := range []struct {
		name string
		to   func(now time.Time) time.Time
	}{
		{"5 hours forward", func(now time.Time) time.Time { return now.Add(5 * time.Hour) }},
		{"9 hours back", func(now time.Time) time.Time { return now.Add(-9 * time.Hour) }},
		// The kernel allows no time before the machine was started, so not 0 o'clock.
		{"to 1970", func(time.Time) time.Time { return time.Unix(3600, 0) }},
		{"to 2037", func(time.Time) time.Time { return time.Date(2037, 12, 31, 23, 59, 59, 0, time.UTC) }},
	} {
		from := s.plugin.mark()
		s.must(setClock(step.to(time.Now().Round(0))))
		s.changes(step.name)
		if got := s.plugin.mark() - from; got > 2*lines { // some may be more where the machine is slow
			s.errorf("%s: the plugin has logged %d lines; before any step the same changes made %d", step.name, got, lines)
		}
		s.still(step.name)
		if err := s.plugin.serves(s.ctx); err != nil {
			s.errorf("%s: %v", step.name, err)
		}
	}
	// kubelet's socket is known by its times too, and the waits between attempts must not depend on
	// the clock.
	s.must(setClock(time.Unix(7200, 0)), s.kubelet.stop())
	s.streamsEnd()
	s.must(setClock(time.Unix(3600, 0)), s.kubelet.start())
	for _, d := range s.plain() {
		s.becomes(d, healthy)
		s.granted(d)
	}
}

// setClock sets the wall clock.
func setClock(to time.Time) error {
	tv := unix.NsecToTimeval(to.UnixNano())
	if err := unix.Settimeofday(&tv); err != nil {
		return fmt.Errorf("set the clock to %s: %w", to, err)
	}
	return nil
}

// changes has a device leave and return some times, checks how long it takes until kubelet hears of
// that, and returns how many lines that made in the log.
func (s *stage) changes(when string) (lines int) {
	const rounds = 5
	d := s.plain()[0]
	var all []time.Duration
	from := s.plugin.mark()
	for range rounds {
		begun := time.Now()
		s.must(s.unbind(d.ID))
		all = append(all, s.becomes(d, unhealthy).Sub(begun))
		begun = time.Now()
		s.must(s.bind(d.ID, "vfio-pci"))
		all = append(all, s.becomes(d, healthy).Sub(begun))
	}
	s.granted(d)
	// The log may come after the list, and after the answer.
	back, granted := 0, false
	s.plugin.logged(from, patience, func(e entry) bool {
		switch e.Msg {
		case "healthy":
			back++
		case "allocated":
			granted = true
		}
		return back == rounds && granted
	})
	slices.Sort(all)
	s.notef("%s: change to announcement %s median, %s at most", when, round(all[len(all)/2]), round(all[len(all)-1]))
	if all[len(all)/2] > usual {
		s.errorf("%s: a change takes %s to be announced", when, round(all[len(all)/2]))
	}
	return s.plugin.mark() - from
}

// still checks that nothing is said, to kubelet or to the log, and hardly anything done. On a busy host
// the guest takes for work what was waiting for a processor, so the best of some times tells.
func (s *stage) still(when string) {
	best := stillness
	for range 5 {
		lists, used := s.kubelet.received(), s.plugin.used()
		if e, spoke := s.plugin.logged(s.plugin.mark(), stillness, func(entry) bool { return true }); spoke {
			s.errorf("%s: without a change the plugin logs %q, %s", when, e.Msg, e.Reason)
		}
		if more := s.kubelet.received() - lists; more > 0 {
			s.errorf("%s: without a change the plugin has sent %d lists", when, more)
		}
		if best = min(best, s.plugin.used()-used); best < idle {
			break
		}
	}
	s.notef("%s: without a change the plugin uses %s of %s", when, round(best), stillness)
	if best > idle {
		s.errorf("%s: without a change the plugin uses %s of processor time in %s", when, round(best), stillness)
	}
}

// used is the processor time that the plugin has used.
func (s *plugin) used() time.Duration {
	// The kernel's number for the clock of another process, by what the scheduler knows (CPUCLOCK_SCHED).
	clock := int32(^s.cmd.Process.Pid<<3 | 2)
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0 // it has ended, which others notice
	}
	return time.Duration(ts.Nano())
}

// serves asks the plugin, as the node's probe does, whether it is alive and ready.
func (s *plugin) serves(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	path := fmt.Sprintf("unix:///proc/%d/root/run/kata-device-plugin/health.sock", s.cmd.Process.Pid)
	conn, err := grpc.NewClient(path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, service := range []string{"liveness", "readiness"} {
		r, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			return fmt.Errorf("ask for %s: %w", service, err)
		}
		if r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			return fmt.Errorf("ask for %s: the plugin says %s: %w", service, r.GetStatus(), errUnwell)
		}
	}
	return nil
}
