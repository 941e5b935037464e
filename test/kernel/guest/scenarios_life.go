package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"kata-device-plugin/test/kernel/wire"
)

// kill ends the plugin as running out of memory does. The CDI specs stay, and stay true.
func kill(s *stage) {
	_, _, err := s.plugin.end(syscall.SIGKILL)
	s.must(err)
	d := s.plain()[0]
	if node, err := specNode(d.Resource, d.ID); err != nil || owner(node) != d.ID {
		s.errorf("after the kill the CDI spec has %q for %s (%v)", node, d.ID, err)
	}
	// It leaves while nobody looks.
	s.must(s.unbind(d.ID))
	begun := time.Now()
	s.launch()
	other := s.plain()[1]
	at := s.becomes(other, healthy)
	s.notef("start to Healthy: %s", round(at.Sub(begun)))
	if node, err := specNode(d.Resource, d.ID); node != "" {
		s.errorf("after the restart the CDI spec has %q for %s (%v)", node, d.ID, err)
	}
	s.granted(other)
	s.must(s.bind(d.ID, "vfio-pci"))
	s.becomes(d, healthy)
	s.granted(d)
}

// kubeletRestarts has the plugin register again.
func kubeletRestarts(s *stage) {
	s.must(s.kubelet.stop())
	s.streamsEnd()
	d := s.plain()[0]
	s.must(s.unbind(d.ID)) // something that kubelet has to hear of
	begun := time.Now()
	s.must(s.kubelet.start())
	at := s.becomes(d, unhealthy)
	s.notef("kubelet's start to the list: %s", round(at.Sub(begun)))
	s.must(s.bind(d.ID, "vfio-pci"))
	for _, d := range s.plain() {
		s.becomes(d, healthy)
		s.granted(d)
	}
}

// streamsEnd waits until kubelet's connections have ended.
func (s *stage) streamsEnd() {
	ok := s.kubelet.await(patience, func() bool {
		return !slices.ContainsFunc(s.plain(), func(d wire.Device) bool { return s.kubelet.resources[d.Resource].streams > 0 })
	})
	if !ok {
		s.fatalf("the streams did not end: %s", s.kubelet.state())
	}
}

// memory reads how much the plugin uses, of the 64 MiB that the manifest allows it.
func memory(s *stage) {
	s.notef("VmRSS %s, VmHWM %s, of that anonymous %s", s.plugin.status("VmRSS"), s.plugin.status("VmHWM"), s.plugin.status("RssAnon"))
	kilobytes, err := strconv.Atoi(strings.TrimSuffix(s.plugin.status("VmHWM"), " kB"))
	s.must(err)
	if kilobytes > 48<<10 {
		s.errorf("the plugin has used %d kB", kilobytes)
	}
}

// terminate ends the plugin as the removal of its pod does.
func terminate(s *stage) {
	if !s.plugin.running() {
		s.fatalf("the plugin does not run")
	}
	// A machine that others use as well may be slow at any moment; the best of three tells.
	best := s.endOnce()
	for range 2 {
		if best < time.Second {
			break
		}
		s.launch()
		if _, ok := s.plugin.logged(0, patience, func(e entry) bool { return e.Msg == "ready" }); !ok {
			s.errorf("it did not become ready again")
		}
		best = min(best, s.endOnce())
	}
	if best > time.Second {
		s.errorf("it ended after %s at best", round(best))
	}
}

// endOnce ends the plugin, checks what it leaves, and returns how long it took.
func (s *stage) endOnce() time.Duration {
	slow := time.AfterFunc(500*time.Millisecond, func() { s.port.send(wire.Line{Kind: wire.Log, Text: "it waits: " + s.plugin.waits()}) })
	code, took, err := s.plugin.end(syscall.SIGTERM)
	slow.Stop()
	s.must(err)
	s.notef("SIGTERM to the end: %s", round(took))
	if code != 0 {
		s.errorf("it ended with %d", code)
	}
	entries, err := os.ReadDir(pluginsDir)
	s.must(err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "kata-") {
			s.errorf("it left %s", e.Name())
		}
	}
	for _, d := range s.plain() {
		if driver(d.ID) != "vfio-pci" || s.orders.Options["vfio"] != "" {
			continue
		}
		if node, err := specNode(d.Resource, d.ID); err != nil || owner(node) != d.ID {
			s.errorf("after the end the CDI spec has %q for %s (%v)", node, d.ID, err)
		}
	}
	return took
}

// withoutIOMMU has VFIO's unsafe mode: there are VFIO devices, and none is to be declared.
func withoutIOMMU(s *stage) {
	s.must(s.kubelet.start())
	s.launch()
	s.must(s.loadModules(vfioModules()...))
	for _, d := range s.plain() {
		s.must(s.bind(d.ID, "vfio-pci"))
	}
	for _, d := range s.plain() {
		e, ok := s.plugin.logged(0, patience, func(e entry) bool {
			return e.Device == d.ID && (e.Finding == "HST001" || e.Finding == "HST021" || e.Finding == "HST022")
		})
		if !ok {
			s.errorf("the log does not say why %s is not declared", d.ID)
		}
		s.notef("%s: %s", d.ID, e.Reason)
		if s.kubelet.registered(d.Resource) {
			s.errorf("%s is registered: %s", d.Resource, s.kubelet.state())
		}
		if _, err := os.Stat(specPath(d.Resource)); !os.IsNotExist(err) {
			s.errorf("there is a CDI spec of %s: %v", d.Resource, err)
		}
	}
}
