package gather

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kata-device-plugin/internal/claim"
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
			s := &starting{socket: socket, noted: noted{devicePlugins: t.TempDir(), claims: filepath.Join(t.TempDir(), "claims")}}
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

// TestFirstAnswer: there is no answer before the first one. What it lacks of what was given by the notes on disk
// counts for as long as kubelet may not have its pods back, and no longer: notes of pods that have ended stay.
func TestFirstAnswer(t *testing.T) {
	const old = 24 * time.Hour
	has := podresources.Pod{Namespace: "ns", Name: "a", Containers: []podresources.Container{{
		Name: "main", Devices: []podresources.Device{{Resource: "r", ID: "1"}}, Claims: []podresources.Claim{{Namespace: "ns", Name: "c"}},
	}}}
	entry := func(uid, id string) string {
		return `{"PodUID":"` + uid + `","ContainerName":"main","ResourceName":"r","DeviceIDs":{"0":["` + id + `"]}}`
	}
	for _, tt := range []struct {
		name    string
		entries string // of kubelet's record; "-" for one that is none
		claim   claim.State
		answer  []podresources.Pod
		age, up time.Duration // of the socket and of the machine
		after   time.Duration // since the first answer
		good    bool
	}{
		{name: "nothing was given", up: old, good: true},
		{name: "a device is not back", entries: entry("u", "1"), up: old},
		{name: "another is", entries: entry("u", "1") + "," + entry("v", "2"), answer: []podresources.Pod{has}, up: old},
		{name: "all are back", entries: entry("u", "1"), claim: claim.Prepared, answer: []podresources.Pod{has}, up: old, good: true},
		{name: "the pod is back, with less than an init container had", entries: entry("u", "1") + "," + entry("u", "2"), answer: []podresources.Pod{has}, up: old, good: true},
		{name: "a claim is not back", claim: claim.Prepared, up: old},
		{name: "a claim that no pod has yet", claim: claim.Preparing, up: old, good: true},
		{name: "nobody knows what was given", entries: "-", up: old},
		{name: "kubelet is not young", entries: entry("u", "1"), age: time.Hour, up: old, good: true},
		{name: "nor is it, and nobody knows what was given", entries: "-", age: time.Hour, up: old, good: true},
		{name: "the machine was started just now, and has set its clock", entries: entry("u", "1"), age: time.Hour, up: time.Minute},
		{name: "the clock was set back", entries: entry("u", "1"), age: -time.Hour, up: old},
		{name: "the minute is over", entries: entry("u", "1"), up: old, after: time.Minute, good: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			socket, claims := filepath.Join(dir, "kubelet.sock"), filepath.Join(dir, "driver/claims")
			must(t, os.WriteFile(socket, nil, 0o600), os.Chtimes(socket, at(0).Add(-tt.age), at(0).Add(-tt.age)), os.MkdirAll(claims, 0o700))
			must(t, os.WriteFile(filepath.Join(dir, "uptime"), fmt.Appendf(nil, "%.2f 1234.56\n", tt.up.Seconds()), 0o600))
			if tt.entries != "" {
				text := `{"Data":{"PodDeviceEntries":[` + tt.entries + `],"RegisteredDevices":{}},"Checksum":1}`
				must(t, os.WriteFile(filepath.Join(dir, "kubelet_internal_checkpoint"), []byte(text), 0o600))
			}
			if tt.claim != "" {
				store, err := claim.Open(claims)
				must(t, err)
				unlock, err := store.Lock(t.Context())
				must(t, err, store.Put(claim.Record{UID: "c-1", Namespace: "ns", Name: "c", State: tt.claim}), unlock())
			}
			s := &starting{socket: socket, noted: noted{devicePlugins: dir, claims: claims}, proc: dir}
			if tt.after > 0 {
				_ = s.check(s.life(), nil, tt.answer, at(0)) // which begins the minute
			}
			if err := s.check(s.life(), nil, tt.answer, at(0).Add(tt.after)); (err == nil) != tt.good {
				t.Errorf("%v", err)
			}
		})
	}
}
