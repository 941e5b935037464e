package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"kata-device-plugin/test/kernel/facts"
	"kata-device-plugin/test/kernel/wire"
)

// patience is how long anything may take on an emulated machine, where a second of work takes many.
const patience = time.Minute

const (
	healthy   = pluginapi.Healthy
	unhealthy = pluginapi.Unhealthy
)

// lab is one machine.
type lab struct {
	ctx     context.Context
	port    *port
	orders  wire.Orders
	kubelet *kubelet
	plugin  *plugin
	steps   []wire.Step // since the last table
	events  *facts.Events
}

// scenario is something to go through. One that is raw finds the machine as the scenario before left
// it, every other with the plugin running, and the functions without a role bound and healthy.
type scenario struct {
	raw bool
	run func(*stage)
}

// stage is where a scenario plays. Its methods are used as those of testing.T.
type stage struct {
	*lab
	errors, notes []string
}

var (
	errFatal  = errors.New("the scenario cannot go on")
	errUnwell = errors.New("it does not serve")
)

func (s *stage) errorf(format string, args ...any) {
	s.errors = append(s.errors, fmt.Sprintf(format, args...))
}

func (s *stage) fatalf(format string, args ...any) {
	s.errorf(format, args...)
	panic(errFatal)
}

func (s *stage) must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		s.fatalf("%v", err)
	}
}

func (s *stage) notef(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// runAll runs what was ordered and reports each.
func (l *lab) runAll(all map[string]scenario) {
	for _, name := range l.orders.Scenarios {
		s := &stage{lab: l}
		begun := time.Now()
		if sc, ok := all[name]; ok {
			s.play(sc)
		} else {
			s.errorf("there is no scenario of this name; there are %v", slices.Sorted(maps.Keys(all)))
		}
		s.errors = append(append(s.errors, l.kubelet.blames()...), l.plugin.blames()...)
		l.port.send(wire.Line{Kind: wire.Result, Name: name, Errors: s.errors, Notes: s.notes, Took: time.Since(begun)})
	}
}

// play runs one scenario. What it cannot go on after is an error of its own.
func (s *stage) play(sc scenario) {
	defer func() {
		if r := recover(); r != nil && r != errFatal { //nolint:errorlint // it is what was thrown
			s.errorf("panic: %v", r)
		}
	}()
	if !sc.raw {
		s.base()
	}
	sc.run(s)
}

// base brings the machine into the state that scenarios begin with.
func (s *stage) base() {
	if !s.plugin.running() {
		s.launch()
	}
	for _, d := range s.orders.Devices {
		_, err := os.Stat(functions + d.ID)
		switch now := driver(d.ID); {
		case err != nil:
		case d.Role == "" && now != "vfio-pci":
			s.must(s.bind(d.ID, "vfio-pci"))
		case d.Resource != "" && d.Role != "" && now != "":
			s.must(s.unbind(d.ID))
			if known, _ := s.kubelet.announced(d.Resource); slices.Contains(known, d.ID) {
				s.refused(d) // so it has been looked at
				s.becomes(d, unhealthy)
			}
		}
	}
	for _, d := range s.plain() {
		s.becomes(d, healthy)
	}
}

// launch starts the plugin.
func (s *stage) launch() {
	s.kubelet.forget()
	p, err := startPlugin(s.port)
	s.must(err)
	s.plugin = p
}

// plain are the devices without a role.
func (l *lab) plain() []wire.Device {
	var all []wire.Device
	for _, d := range l.orders.Devices {
		if d.Role == "" {
			all = append(all, d)
		}
	}
	return all
}

// role finds the device of a role.
func (s *stage) role(name string) wire.Device {
	for _, d := range s.orders.Devices {
		if d.Role == name {
			return d
		}
	}
	s.fatalf("the machine has no %s", name)
	return wire.Device{}
}

// becomes waits until a device is announced with a health, and returns when that was.
func (s *stage) becomes(d wire.Device, health string) time.Time {
	at, ok := s.kubelet.is(d.Resource, d.ID, health, patience)
	if !ok {
		s.fatalf("%s did not become %s in %s: %s", d.ID, health, patience, s.kubelet.state())
	}
	return at
}

// granted allocates a device, and checks that the node is that function's and no other's.
func (s *stage) granted(d wire.Device) {
	node, err := s.kubelet.allocate(d.Resource, d.ID)
	if err != nil {
		s.errorf("allocate %s: %v", d.ID, err)
	} else if got := owner(node); got != d.ID {
		s.errorf("allocate %s: %s is the device of %q", d.ID, node, got)
	}
}

// refused allocates a device that must not be handed out.
func (s *stage) refused(d wire.Device) string {
	node, err := s.kubelet.allocate(d.Resource, d.ID)
	if err == nil {
		s.errorf("allocate %s: it was granted as %s", d.ID, node)
		return ""
	}
	return err.Error()
}

// table takes down what the product reads now, and what it was told since the table before. What was
// done before the first one is no news: the layout is read from there.
func (s *stage) table(name string) {
	if s.events == nil {
		var err error
		s.events, err = facts.NewEvents("/")
		s.must(err)
	}
	events, err := s.events.Take()
	s.must(err)
	s.port.send(wire.Line{Kind: wire.Table, Name: name, Table: facts.Take("/"), Steps: s.steps, Events: events})
	s.steps = nil
}

// did notes a step for the simulator to repeat.
func (l *lab) did(s wire.Step) { l.steps = append(l.steps, s) }
