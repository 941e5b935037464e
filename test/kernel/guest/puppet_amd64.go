package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// puppet is a thread of another process that is made to call the kernel: what the kernel answers is
// what it would answer that process, with its credentials and its confinement. No other way shows
// from outside what Landlock keeps from a process.
type puppet struct {
	tid  int
	gate uint64 // an instruction that calls the kernel
	page uint64 // memory of the process for arguments
}

// puppets stops the threads of a process, all but those that end meanwhile. The caller is bound to
// its thread, as the kernel wants it of a tracer.
func puppets(pid int) (all []*puppet, err error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return nil, err
	}
	gate := uint64(0)
	for _, t := range tasks {
		tid, err := strconv.Atoi(filepath.Base(t))
		if err != nil {
			return all, err
		}
		if err := stop(tid); errors.Is(err, unix.ESRCH) {
			continue
		} else if err != nil {
			return all, fmt.Errorf("stop thread %d: %w", tid, err)
		}
		all = append(all, &puppet{tid: tid})
		if at, found := gateOf(tid); found {
			gate = at
		}
	}
	if gate == 0 {
		return all, fmt.Errorf("find a thread of %d that waits in the kernel: %w", pid, os.ErrNotExist)
	}
	for _, p := range all {
		p.gate = gate
	}
	return all, nil
}

func stop(tid int) error {
	if err := unix.PtraceSeize(tid); err != nil {
		return err
	}
	if err := unix.PtraceInterrupt(tid); err != nil {
		return err
	}
	_, err := unix.Wait4(tid, nil, unix.WALL, nil)
	return err
}

// gateOf finds the instruction by which a thread has entered the kernel.
func gateOf(tid int) (at uint64, found bool) {
	var regs unix.PtraceRegs
	code := make([]byte, 2)
	if err := unix.PtraceGetRegs(tid, &regs); err != nil {
		return 0, false
	}
	at = regs.Rip - uint64(len(code))
	if _, err := unix.PtracePeekText(tid, uintptr(at), code); err != nil {
		return 0, false
	}
	return at, slices.Equal(code, []byte{0x0f, 0x05})
}

// release lets the thread go on where it was.
func (p *puppet) release() error {
	var err error
	if p.page != 0 {
		_, err = p.call(unix.SYS_MUNMAP, int(p.page), os.Getpagesize())
	}
	return errors.Join(err, unix.PtraceDetach(p.tid))
}

// call has the thread call the kernel. An argument that is a string goes through the process's
// memory. What the thread was doing is as before afterwards.
func (p *puppet) call(number uintptr, args ...any) (result int, err error) {
	if p.page == 0 && number != unix.SYS_MMAP {
		page, err := p.call(unix.SYS_MMAP, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, -1, 0)
		if err != nil {
			return 0, fmt.Errorf("get memory for arguments: %w", err)
		}
		p.page = uint64(page)
	}
	var saved unix.PtraceRegs
	if err := unix.PtraceGetRegs(p.tid, &saved); err != nil {
		return 0, err
	}
	regs := saved
	// Nothing is to be restarted before the call: that comes when the saved registers are back.
	regs.Orig_rax, regs.Rax, regs.Rip = ^uint64(0), uint64(number), p.gate
	at := p.page
	for i, to := range []*uint64{&regs.Rdi, &regs.Rsi, &regs.Rdx, &regs.R10, &regs.R8, &regs.R9}[:len(args)] {
		switch a := args[i].(type) {
		case int:
			*to = uint64(a)
		case []byte:
			if _, err := unix.PtracePokeData(p.tid, uintptr(at), a); err != nil {
				return 0, err
			}
			*to, at = at, at+uint64(len(a)+15)&^15
		default:
			return 0, fmt.Errorf("argument %d: %w", i, errors.ErrUnsupported)
		}
	}
	if err := p.step(&regs); err != nil {
		return 0, err
	}
	if err := unix.PtraceSetRegs(p.tid, &saved); err != nil {
		return 0, err
	}
	if v := int64(regs.Rax); v < 0 && v > -4096 {
		return 0, unix.Errno(-v)
	}
	return int(regs.Rax), nil
}

// step runs the one instruction, and brings the registers up to date. A signal that comes in between
// is the runtime's, to preempt a goroutine, which has been done by now.
func (p *puppet) step(regs *unix.PtraceRegs) error {
	if err := unix.PtraceSetRegs(p.tid, regs); err != nil {
		return err
	}
	for {
		if err := unix.PtraceSingleStep(p.tid); err != nil {
			return err
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(p.tid, &status, unix.WALL, nil); err != nil {
			return err
		}
		if !status.Stopped() {
			return fmt.Errorf("step thread %d: it ended with %#x", p.tid, status)
		}
		if err := unix.PtraceGetRegs(p.tid, regs); err != nil {
			return err
		}
		if s := status.StopSignal(); regs.Rip != p.gate {
			return nil
		} else if s != unix.SIGURG && s != unix.SIGTRAP {
			return fmt.Errorf("step thread %d: it was stopped by %s", p.tid, s)
		}
	}
}

// text0 is a string as the kernel wants it.
func text0(s string) []byte { return append([]byte(s), 0) }
