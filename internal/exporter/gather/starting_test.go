package gather

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"kata-device-plugin/internal/podresources"
)

// TestStarting: what a kubelet says that does not have its pods back counts for nothing, until it has them or
// has had time for it. Whose answer it is its socket tells, and no clock but the exporter's own.
func TestStarting(t *testing.T) {
	pod := func(name string, devices ...string) podresources.Pod {
		c := podresources.Container{Name: "main"}
		for _, id := range devices {
			c.Devices = append(c.Devices, podresources.Device{Resource: "r", ID: id})
		}
		return podresources.Pod{Namespace: "ns", Name: name, Containers: []podresources.Container{c}}
	}
	claim := podresources.Pod{Namespace: "ns", Name: "claim", Containers: []podresources.Container{{Claims: []podresources.Claim{{Name: "c"}}}}}
	before := []podresources.Pod{pod("a", "1"), pod("idle"), claim}
	for _, tt := range []struct {
		name   string
		before []podresources.Pod
		answer []podresources.Pod
		after  time.Duration // since this kubelet's first answer
		clock  time.Duration // of the socket, against the exporter's
		good   bool
	}{
		{name: "all are back", before: before, answer: []podresources.Pod{claim, pod("a", "1")}, good: true},
		{name: "with other devices", before: before, answer: []podresources.Pod{claim, pod("a", "2")}, good: true},
		{name: "none is back", before: before},
		{name: "one is back", before: before, answer: []podresources.Pod{pod("a", "1")}},
		{name: "they are back, and one without its devices", before: before, answer: []podresources.Pod{claim, pod("a")}},
		{name: "just before the minute", before: before, after: time.Minute - 1},
		{name: "after a minute the pod has gone", before: before, after: time.Minute, good: true},
		{name: "nobody had anything", before: []podresources.Pod{pod("idle")}, good: true},
		{name: "it is the first answer at all", good: true},
		{name: "the clock was set back since kubelet started", before: before, clock: time.Hour},
		{name: "the clock was set forward since kubelet started", before: before, clock: -time.Hour},
		{name: "the clock was set, and the minute is over", before: before, clock: time.Hour, after: time.Minute, good: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "kubelet.sock")
			must(t, os.WriteFile(socket, nil, 0o600), os.Chtimes(socket, at(0).Add(tt.clock), at(0).Add(tt.clock)))
			s := &starting{socket: socket}
			if tt.after > 0 {
				_ = s.check(s.life(), tt.before, nil, at(0)) // which begins the minute
			}
			if err := s.check(s.life(), tt.before, tt.answer, at(0).Add(tt.after)); (err == nil) != tt.good {
				t.Errorf("%v", err)
			}
			if !tt.good {
				return
			}
			// From then on what it says counts: a pod that is not in it has gone.
			if err := s.check(s.life(), before, nil, at(1).Add(tt.after)); err != nil {
				t.Errorf("later: %v", err)
			}
			// The next one begins anew.
			must(t, os.Chtimes(socket, at(7), at(7)))
			if err := s.check(s.life(), before, nil, at(2).Add(tt.after)); err == nil {
				t.Error("the next kubelet is believed at once")
			}
		})
	}
}

// TestRestartedWhileAsked: of an answer from between two kubelets nobody knows whose it is.
func TestRestartedWhileAsked(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	must(t, os.WriteFile(socket, nil, 0o600), os.Chtimes(socket, at(0), at(0)))
	s := &starting{socket: socket}
	life := s.life()
	must(t, os.Chtimes(socket, at(1), at(1)))
	if err := s.check(life, nil, nil, at(1)); err == nil {
		t.Error("believed")
	}
	must(t, os.Remove(socket))
	if err := s.check(at(1), nil, nil, at(1)); err == nil {
		t.Error("believed without a socket")
	}
}
