package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"kata-device-plugin/test/peer/wire"
)

// supervisor starts programs for the test and tells it how they end. As the first
// process it is also the parent of every orphan, whose end it takes note of and forgets.
type supervisor struct {
	mu      sync.Mutex // held from before a process exists until it is in the map
	running map[int]chan syscall.WaitStatus
	serial  int
}

func newSupervisor() *supervisor { return &supervisor{running: map[int]chan syscall.WaitStatus{}} }

// reap waits for children for ever.
func (s *supervisor) reap() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	for range died {
		for s.reapOne() {
		}
	}
}

func (s *supervisor) reapOne() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.EINTR) {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	if c := s.running[pid]; c != nil {
		delete(s.running, pid)
		c <- status
	}
	return true
}

func (s *supervisor) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			s.answer(conn)
		}()
	}
}

func (s *supervisor) answer(conn net.Conn) {
	r, w := bufio.NewReader(conn), json.NewEncoder(conn)
	var req wire.Request
	line, err := r.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &req)
	}
	switch {
	case err != nil:
		err = fmt.Errorf("read the request: %w", err)
	case req.Start != nil:
		err = s.run(req.Start, r, w)
	case req.Dial != "":
		err = dial(req.Dial, r, conn, w)
	default:
		err = errors.New("the request asks for nothing")
	}
	if err == nil {
		return
	}
	if err := w.Encode(wire.Event{Error: err.Error()}); err != nil {
		fmt.Fprintln(os.Stderr, "inside: answer the test:", err)
	}
}

// run starts a program, passes signals on to it, and reports its end.
func (s *supervisor) run(start *wire.Start, orders io.Reader, events *json.Encoder) error {
	pid, ended, err := s.start(start)
	if err != nil {
		return fmt.Errorf("start %s: %w", start.Path, err)
	}
	if err := events.Encode(wire.Event{PID: pid}); err != nil {
		return err
	}
	go func() {
		d := json.NewDecoder(orders)
		for {
			var o wire.Order
			if d.Decode(&o) != nil {
				return
			}
			s.signal(pid, syscall.Signal(o.Signal))
		}
	}()
	status := <-ended
	e := wire.Event{PID: pid, Exited: true, Code: status.ExitStatus()}
	if status.Signaled() {
		e.Signal = int(status.Signal())
	}
	return events.Encode(e)
}

// signal cannot reach another process of the same number: the number is free only after
// the process was taken out of the map.
func (s *supervisor) signal(pid int, sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[pid] != nil {
		_ = syscall.Kill(pid, sig) // it is there, if only as a zombie
	}
}

func (s *supervisor) start(start *wire.Start) (int, <-chan syscall.WaitStatus, error) {
	log, err := os.OpenFile(start.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, nil, err
	}
	defer log.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer null.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	path, argv, sys := start.Path, append([]string{start.Path}, start.Args...), &syscall.SysProcAttr{Setsid: true}
	if c := start.Container; c != nil {
		s.serial++
		file := filepath.Join(wire.StateDir, "container."+strconv.Itoa(s.serial))
		data, err := json.Marshal(c)
		if err == nil {
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			return 0, nil, err
		}
		path = filepath.Join(wire.ProgramDir, "inside")
		argv = append([]string{path, "container", file}, argv...)
		sys.Cloneflags = unix.CLONE_NEWNS
	}
	env := []string{"PATH=" + wire.ProgramDir + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/"}
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Dir: "/", Env: env, Sys: sys, Files: []uintptr{null.Fd(), log.Fd(), log.Fd()},
	})
	if err != nil {
		return 0, nil, err
	}
	ended := make(chan syscall.WaitStatus, 1)
	s.running[pid] = ended
	return pid, ended, nil
}

// dial makes the test's connection one to an address of this network namespace.
func dial(address string, r io.Reader, test net.Conn, events *json.Encoder) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := events.Encode(wire.Event{}); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(conn, r)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(test, conn)
	return err
}
