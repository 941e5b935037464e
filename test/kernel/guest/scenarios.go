package main

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/test/kernel/wire"
)

// scenarios are all there are, by the names that the host orders them by.
func scenarios() map[string]scenario {
	return map[string]scenario{
		"the plugin starts before VFIO is loaded":      {raw: true, run: startsFirst},
		"Landlock confines the plugin":                 {run: landlockOn},
		"Landlock is off":                              {run: landlockOff},
		"identity and NUMA":                            {run: identity},
		"a function without a NUMA node":               {run: withoutNUMA},
		"tables":                                       {run: tables},
		"bind and unbind are announced":                {run: bindUnbind},
		"change to announcement":                       {run: latency},
		"rebind keeps the ID":                          {run: rebind},
		"numbers are swapped":                          {run: swap},
		"unbind while held":                            {run: unbindHeld},
		"rebind while held":                            {run: rebindHeld},
		"the last device leaves and the first returns": {run: lastAndFirst},
		"hot-unplug and hot-plug":                      {run: unplug},
		"hot-unplug while held":                        {run: unplugHeld},
		"remove and rescan":                            {run: removeRescan},
		"a companion of the host":                      {run: companion},
		"a companion that leaves":                      {run: companionLeaves},
		"a mediated device":                            {run: mediated},
		"module unload and load":                       {run: reload},
		"kill and restart":                             {run: kill},
		"kubelet restarts":                             {run: kubeletRestarts},
		"the wall clock steps":                         {run: clockSteps},
		"nothing can be read":                          {run: unreadable},
		"two plugins":                                  {run: twoPlugins},
		"memory":                                       {run: memory},
		"SIGTERM":                                      {raw: true, run: terminate},
		"nothing without an IOMMU":                     {raw: true, run: withoutIOMMU},
		"tables without an IOMMU":                      {raw: true, run: tablesWithoutIOMMU},
		"a display with its audio":                     {run: display},
		"a PF with VFs":                                {run: physicalFunction},
		"a PF is unbound while held":                   {run: pfHeld},
		"VFs are never declared":                       {run: virtualFunctions},
		"the VF removal window":                        {run: removalWindow},
	}
}

// startsFirst has the plugin on a node whose VFIO modules come later.
func startsFirst(s *stage) {
	s.must(s.kubelet.start())
	s.launch()
	if _, ok := s.plugin.logged(0, patience, func(e entry) bool { return e.Msg == "ready" }); !ok {
		s.fatalf("without VFIO the plugin did not become ready")
	}
	if _, err := os.Stat("/sys/class/vfio-dev"); err == nil {
		s.errorf("VFIO is there before its modules")
	}
	s.must(s.loadModules(vfioModules()...))
	for _, d := range s.plain() {
		s.must(s.bind(d.ID, "vfio-pci"))
	}
	for _, d := range s.plain() {
		s.becomes(d, healthy)
	}
}

// landlockOn checks that the kernel enforces all that the plugin asks for.
func landlockOn(s *stage) {
	const createRuleset, version = 444, 1 // landlock_create_ruleset, LANDLOCK_CREATE_RULESET_VERSION
	abi, _, errno := unix.Syscall(createRuleset, 0, 0, version)
	if errno != 0 {
		s.fatalf("the kernel has no Landlock: %v", errno)
	}
	s.notef("Landlock ABI %d, kernel %s", abi, text("/proc/sys/kernel/osrelease"))
	if e, found := s.plugin.logged(0, 0, confinement); found {
		s.errorf("the plugin says %q (%s)", e.Msg, e.Reason)
	}
	if got := s.plugin.status("CapBnd"); strings.Trim(got, "0") != "" {
		s.errorf("the plugin may get capabilities %s", got)
	}
	s.attempted(true)
}

func confinement(e entry) bool { return strings.Contains(e.Msg, "Landlock") || e.Landlock != nil }

// landlockOff checks that the plugin works without, and says so; and that what landlockOn sees is
// Landlock's work.
func landlockOff(s *stage) {
	e, found := s.plugin.logged(0, 0, confinement)
	if !found || e.Landlock == nil || *e.Landlock != 0 || e.Reason == "" {
		s.fatalf("the plugin says %+v", e)
	}
	s.notef("%s: %s", e.Msg, e.Reason)
	s.attempted(false)
}

// identity checks that what is declared is what is there, and where.
func identity(s *stage) {
	want := map[string][]string{}
	for _, d := range s.plain() {
		want[d.Resource] = append(want[d.Resource], d.ID)
		_, topology := s.kubelet.announced(d.Resource)
		if !slices.Equal(topology[d.ID], []int64{d.NUMA}) {
			s.errorf("%s is on NUMA node %d, and announced on %v", d.ID, d.NUMA, topology[d.ID])
		}
		s.granted(d)
	}
	for resource, ids := range want {
		slices.Sort(ids)
		if got, _ := s.kubelet.announced(resource); !slices.Equal(got, ids) {
			s.errorf("%s is announced as %v, want %v", resource, got, ids)
		}
	}
}

// withoutNUMA has one device whose node is unknown: kubelet wants nodes for all devices or none.
func withoutNUMA(s *stage) {
	d := s.role(wire.Hot)
	s.must(s.bind(d.ID, "vfio-pci"))
	s.becomes(d, healthy)
	if _, topology := s.kubelet.announced(d.Resource); len(topology) > 0 {
		s.errorf("%s has no NUMA node, and the nodes %v were announced", d.ID, topology)
	}
	s.granted(d)
}

// bindUnbind goes once through all devices.
func bindUnbind(s *stage) {
	for _, d := range s.plain() {
		s.must(s.unbind(d.ID))
		s.becomes(d, unhealthy)
		s.refused(d)
		s.must(s.bind(d.ID, "vfio-pci"))
		s.becomes(d, healthy)
		s.granted(d)
	}
}

// latency measures from the write to sysfs to the arrival of the list at kubelet.
func latency(s *stage) {
	d := s.plain()[0]
	const rounds = 20
	measure := func(health string, change func() error) time.Duration {
		begun := time.Now()
		s.must(change())
		return s.becomes(d, health).Sub(begun)
	}
	var gone, back []time.Duration
	for range rounds {
		gone = append(gone, measure(unhealthy, func() error { return s.unbind(d.ID) }))
		back = append(back, measure(healthy, func() error { return s.bind(d.ID, "vfio-pci") }))
	}
	for what, all := range map[string][]time.Duration{"unbind to Unhealthy": gone, "bind to Healthy": back} {
		slices.Sort(all)
		median := all[rounds/2]
		s.notef("%s: %s at least, %s median, %s at most", what, round(all[0]), round(median), round(all[rounds-1]))
		if median > usual {
			s.errorf("%s takes %s", what, round(median))
		}
	}
}

// usual is what a change may take to be announced. What is promised is 100 ms on a node. Here one CPU
// of the host emulates them all, and others may want that as well: beside ten compilers it was 400 ms,
// alone it is 30. A glance that had not come at once would take 30 s.
const usual = time.Second

func round(d time.Duration) string { return d.Round(100 * time.Microsecond).String() }

// rebind has a function away and back several times, with others coming in between.
func rebind(s *stage) {
	a, b := s.plain()[0], s.plain()[1]
	for range 3 {
		s.must(s.unbind(a.ID), s.unbind(b.ID), s.bind(b.ID, "vfio-pci"), s.bind(a.ID, "vfio-pci"))
		s.becomes(a, healthy)
		s.becomes(b, healthy)
		s.granted(a)
		s.granted(b)
	}
}

// swap lets two functions exchange their numbers while the plugin cannot look: when it can, nothing
// that it has seen before is to be believed.
func swap(s *stage) {
	for _, d := range s.plain() {
		s.must(s.unbind(d.ID))
	}
	for _, d := range s.plain() {
		s.must(s.bind(d.ID, "vfio-pci"))
	}
	for _, d := range s.plain() {
		s.becomes(d, healthy)
		s.granted(d)
	}
	a, b := s.plain()[0], s.plain()[1]
	wasA, wasB := cdev(a.ID), cdev(b.ID)
	s.must(s.plugin.cmd.Process.Signal(syscall.SIGSTOP))
	s.must(s.unbind(a.ID), s.unbind(b.ID), s.bind(b.ID, "vfio-pci"), s.bind(a.ID, "vfio-pci"))
	if cdev(a.ID) != wasB || cdev(b.ID) != wasA {
		s.errorf("%s had %s and has %s, %s had %s and has %s", a.ID, wasA, cdev(a.ID), b.ID, wasB, cdev(b.ID))
	}
	s.must(s.plugin.cmd.Process.Signal(syscall.SIGCONT))
	s.granted(a) // whatever it has seen by now
	s.granted(b)
	for _, d := range []wire.Device{a, b} {
		ok := s.kubelet.await(patience, func() bool {
			node, err := specNode(d.Resource, d.ID)
			return err == nil && owner(node) == d.ID
		})
		if !ok {
			s.errorf("the CDI spec of %s does not follow", d.ID)
		}
	}
	s.notef("%s and %s have exchanged %s and %s", a.ID, b.ID, wasA, wasB)
}

// lastAndFirst empties the node, so that the kernel removes the directory of the nodes.
func lastAndFirst(s *stage) {
	for range 2 {
		for _, d := range s.plain() {
			s.must(s.unbind(d.ID))
		}
		if _, err := os.Stat("/dev/vfio/devices"); !os.IsNotExist(err) {
			s.errorf("the directory of the nodes is there without a device: %v", err)
		}
		for _, d := range s.plain() {
			s.becomes(d, unhealthy)
		}
		for _, d := range s.plain() { // the spec went with the last device, before that was announced
			if _, err := os.Stat(specPath(d.Resource)); !os.IsNotExist(err) {
				s.errorf("the CDI spec of %s is there without a device: %v", d.Resource, err)
			}
		}
		for _, d := range s.plain() {
			s.must(s.bind(d.ID, "vfio-pci"))
		}
		for _, d := range s.plain() {
			s.becomes(d, healthy)
			s.granted(d)
		}
	}
}
