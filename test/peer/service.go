package peer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"kata-device-plugin/test/peer/wire"
)

// service is a program of the node that can be stopped and started again.
type service struct {
	box  *box
	name string
	proc *Process
}

// run starts the program. Its log goes on where the last life's ended.
func (s *service) run(ctx context.Context, start wire.Start) (err error) {
	if s.Running() {
		return fmt.Errorf("start %s: it runs already", s.name)
	}
	start.Log = filepath.Join("/var/log", s.name+".log")
	s.proc, err = s.box.start(ctx, s.name, start)
	return err
}

// Running says whether the program runs, or is paused.
func (s *service) Running() bool {
	if s.proc == nil {
		return false
	}
	select {
	case <-s.proc.exited:
		return false
	default:
		return true
	}
}

// PID is the process's number inside the node.
func (s *service) PID() int { return s.proc.PID() }

// Signal sends a signal that ends the program, and waits until it has gone.
func (s *service) Signal(ctx context.Context, sig syscall.Signal) error {
	_, err := s.proc.end(ctx, sig)
	return err
}

// Stop asks the program to end (SIGTERM) and waits until it has.
func (s *service) Stop(ctx context.Context) (Exit, error) { return s.proc.end(ctx, syscall.SIGTERM) }

// Kill ends the program with no chance to say goodbye, and waits until it has gone.
func (s *service) Kill(ctx context.Context) (Exit, error) { return s.proc.end(ctx, syscall.SIGKILL) }

// Pause stops the program's clock (SIGSTOP): it is there and does nothing.
func (s *service) Pause() error { return s.proc.Signal(syscall.SIGSTOP) }

// Resume ends a pause.
func (s *service) Resume() error { return s.proc.Signal(syscall.SIGCONT) }

// PauseFor pauses the program for a time. That time is the fault, not a wait for
// anything.
func (s *service) PauseFor(ctx context.Context, d time.Duration) error {
	if err := s.Pause(); err != nil {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return s.Resume()
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), s.Resume())
	}
}

// died is what to complain about while waiting for something of a program.
func (s *service) died() error {
	if s.Running() {
		return nil
	}
	if s.proc == nil {
		return fmt.Errorf("%s was never started", s.name)
	}
	return fmt.Errorf("%s has ended: %s; see %s", s.name, s.proc.exit, s.box.Log(s.name))
}
