package main

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// unreadable takes the plugin's right to open files away, so that nothing can be listed or read any
// more. What cannot be read is not gone: nothing is announced, neither then nor when it is over. But
// nothing is handed out meanwhile.
func unreadable(s *stage) {
	lists, from := s.kubelet.received(), s.plugin.mark()
	see := s.blind()
	defer see()
	const junk = "/dev/vfio/devices/junk" // an event, and no trace
	s.must(os.WriteFile(junk, nil, 0o600), os.Remove(junk))
	e, ok := s.plugin.logged(from, patience, finding("HST034", ""))
	if !ok {
		s.errorf("the log does not say HST034")
	}
	s.notef("%s", e.Reason)
	for _, d := range s.plain() {
		s.notef("%s is refused: %s", d.ID, s.refused(d))
	}
	see()
	if _, ok := s.plugin.logged(from, patience, func(e entry) bool { return e.Msg == "ready" }); !ok {
		s.errorf("it did not become ready again")
	}
	for _, d := range s.plain() {
		s.granted(d)
	}
	if more := s.kubelet.received() - lists; more > 0 {
		s.errorf("of what could not be read %d lists were sent: %s", more, s.kubelet.state())
	}
	// One that leaves meanwhile is not handed out, whatever of that can be seen.
	d := s.plain()[0]
	see = s.blind()
	s.must(s.unbind(d.ID))
	s.notef("%s is refused: %s", d.ID, s.refused(d))
	see()
	s.becomes(d, unhealthy)
	s.must(s.bind(d.ID, "vfio-pci"))
	for _, d := range s.plain() {
		s.becomes(d, healthy)
		s.granted(d)
	}
}

// blind lets the plugin open no more files, until what it returns is called. What it has open stays,
// and links and attributes of files can be asked for.
func (s *stage) blind() (see func()) {
	limit, err := s.plugin.openFiles(nil)
	s.must(err)
	_, err = s.plugin.openFiles(&unix.Rlimit{Cur: 0, Max: limit.Max})
	s.must(err)
	return func() {
		_, err := s.plugin.openFiles(&limit)
		s.must(err)
	}
}

// openFiles sets how many files the plugin may have open, if at all, and returns what that was.
func (s *plugin) openFiles(to *unix.Rlimit) (was unix.Rlimit, err error) {
	if err := unix.Prlimit(s.cmd.Process.Pid, unix.RLIMIT_NOFILE, to, &was); err != nil {
		return was, fmt.Errorf("limit the plugin's open files: %w", err)
	}
	return was, nil
}

// twoPlugins starts a second plugin beside the first. It keeps away until the first one dies.
func twoPlugins(s *stage) {
	first := s.plugin
	lists := s.kubelet.received()
	second, err := startPlugin(s.port)
	s.must(err)
	defer func() {
		if first.running() { // something went wrong
			_, _, err := second.end(syscall.SIGKILL)
			s.must(err)
		}
	}()
	for _, resource := range []string{s.plain()[0].Resource, s.plain()[len(s.plain())-1].Resource} {
		_, ok := second.logged(0, patience, func(e entry) bool { return e.Finding == "PLG018" && e.Resource == resource })
		if !ok {
			s.fatalf("the second plugin does not say PLG018 of %s", resource)
		}
	}
	for _, d := range s.plain() {
		s.granted(d)
	}
	if more := s.kubelet.received() - lists; more > 0 { // a second registration is a fault of its own
		s.errorf("beside the second plugin %d lists were sent", more)
	}
	s.kubelet.forget() // that an ID is never withdrawn is promised for one life
	_, _, err = first.end(syscall.SIGKILL)
	s.must(err)
	s.plugin = second
	if _, ok := second.logged(0, patience, func(e entry) bool { return e.Msg == "ready" }); !ok {
		s.errorf("the second plugin did not become ready when the first had ended")
	}
	for _, d := range s.plain() {
		s.becomes(d, healthy)
		s.granted(d)
	}
}
