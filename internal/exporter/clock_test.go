package exporter

import (
	"testing"
	"time"
	"unsafe"
)

// TestClockIsSet: what was noted a minute ago is told as a minute ago, also when the clock was set in between.
func TestClockIsSet(t *testing.T) {
	noted := time.Now()
	for _, step := range []int64{0, 2 * 3600, -2 * 3600} {
		now := set(noted.Add(time.Minute), step)
		if now.Sub(noted) != time.Minute || now.Unix() != noted.Add(time.Minute).Unix()+step {
			t.Fatalf("a clock that is set by %d s cannot be imitated any more", step)
		}
		s := &scrape{at: now}
		if age := float64(now.UnixNano())/1e9 - s.seconds(noted); age < 59.9 || age > 60.1 {
			t.Errorf("after a step of %d s it is told as %.0f s ago", step, age)
		}
		plain := noted.Round(0) // out of a file: there is nothing to correct it by
		if got, want := s.seconds(plain), float64(plain.UnixNano())/1e9; got < want-0.1 || got > want+0.1 {
			t.Errorf("a time by the wall alone is %f, want %f", got, want)
		}
	}
}

// set is what a clock reads that somebody has set by some seconds: the time on the wall moves, and what a Time has
// of the monotonic clock does not. Nothing but the kernel makes such a one: in a Time's first word the seconds are
// above 30 bits of nanoseconds.
func set(t time.Time, seconds int64) time.Time {
	*(*int64)(unsafe.Pointer(&t)) += seconds << 30
	return t
}
