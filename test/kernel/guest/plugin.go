package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/test/kernel/wire"
)

// entry is a line of the plugin's log, as far as scenarios ask for it.
type entry struct {
	Level, Msg, Finding, Reason string
	Resource, Device            any // one, or several
	Landlock                    *int
}

// plugin is the running plugin.
type plugin struct {
	cmd  *exec.Cmd
	gone chan struct{}

	mu      sync.Mutex
	entries []entry
	changed chan struct{}
	told    map[string]bool // what was found, and is
	faults  []string
}

// startPlugin starts the shipped program as the manifest does.
func startPlugin(p *port) (*plugin, error) {
	// kubelet makes this one of the host's directories (DirectoryOrCreate), if VFIO has not yet.
	for _, dir := range []string{podRoot, "/dev/vfio"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	s := &plugin{cmd: exec.Command("/proc/self/exe", "become", "/kata-device-plugin"), gone: make(chan struct{}), changed: make(chan struct{}),
		told: map[string]bool{}}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	s.cmd.Env = []string{}
	out, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the plugin: %w", err)
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			p.send(wire.Line{Kind: wire.Log, Text: lines.Text()})
			e := entry{}
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				e.Msg = lines.Text()
			}
			s.mu.Lock()
			s.once(e)
			s.entries = append(s.entries, e)
			close(s.changed)
			s.changed = make(chan struct{})
			s.mu.Unlock()
		}
		_ = s.cmd.Wait() // the exit status is in ProcessState
		close(s.gone)
	}()
	return s, nil
}

// once holds a line against those before: of what stays as it is, the log tells one time. That a
// device is unhealthy may come twice, for it may have been half bound in between, which is not told.
// The caller holds the mutex.
func (s *plugin) once(e entry) {
	what := fmt.Sprint(e.Finding, " ", e.Resource, " ", e.Device, " ", e.Reason)
	switch e.Msg {
	case "found":
		if s.told[what] {
			s.faults = append(s.faults, "the log tells a second time: "+what)
		}
		s.told[what] = e.Level != "INFO" // that a note is over is not told
	case "no longer found":
		delete(s.told, what)
	}
}

// blames returns the faults since the last call.
func (s *plugin) blames() []string {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.faults
	s.faults = nil
	return f
}

func (s *plugin) running() bool {
	if s == nil {
		return false
	}
	select {
	case <-s.gone:
		return false
	default:
		return true
	}
}

// logged waits for a line of the log, of those from the n-th on.
func (s *plugin) logged(n int, limit time.Duration, match func(entry) bool) (entry, bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		s.mu.Lock()
		all, changed := s.entries, s.changed
		s.mu.Unlock()
		for ; n < len(all); n++ {
			if match(all[n]) {
				return all[n], true
			}
		}
		select {
		case <-changed:
		case <-s.gone:
			return entry{}, false
		case <-timer.C:
			return entry{}, false
		}
	}
}

// mark is how many lines there are.
func (s *plugin) mark() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.entries)
}

// end sends a signal and waits for the end.
func (s *plugin) end(signal syscall.Signal) (code int, took time.Duration, err error) {
	begun := time.Now()
	if err := s.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return -1, 0, fmt.Errorf("signal the plugin: %w", err)
	}
	select {
	case <-s.gone:
		return s.cmd.ProcessState.ExitCode(), time.Since(begun), nil
	case <-time.After(patience):
		return -1, time.Since(begun), fmt.Errorf("wait for the plugin to end after %s: %w", signal, os.ErrDeadlineExceeded)
	}
}

// waits tells where in the kernel the process's threads wait, as far as that is not for work.
func (s *plugin) waits() string {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", s.cmd.Process.Pid))
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, t := range tasks {
		where, state := text(t+"/wchan"), strings.Fields(text(t+"/stat"))
		if len(state) > 2 && where != "0" && !strings.HasPrefix(where, "futex") && !strings.Contains(where, "epoll") {
			all = append(all, where+" ("+state[2]+")")
		}
	}
	return strings.Join(all, ", ")
}

// status is a line of the process's status.
func (s *plugin) status(name string) string {
	for line := range strings.Lines(text(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
