package kernel

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kata-device-plugin/test/kernel/wire"
)

// pluginLog is the name of the file with the plugin's log, and how each scenario ended.
const pluginLog = "plugin.log"

// Report is what a machine's guest told.
type Report struct {
	Results map[string]wire.Line
	Tables  []wire.Line
	// Kernel is how long it took from QEMU's start to the guest's first line, Total to its end.
	Kernel, Total time.Duration
}

// Boot runs a machine to its end. Console and plugin log are written to dir, which has to exist. The
// report has what the guest told also when there is an error.
func (l *Lab) Boot(ctx context.Context, m Machine, dir string) (*Report, error) {
	r := &Report{Results: map[string]wire.Line{}}
	q := l.Small
	if m.SRIOV {
		q = l.SRIOV
	}
	sockets, err := os.MkdirTemp(l.room.dir, "") // a socket's path must be short
	if err != nil {
		return r, fmt.Errorf("make a directory for sockets: %w", err)
	}
	talk, err := net.Listen("unix", filepath.Join(sockets, "talk"))
	if err != nil {
		return r, err
	}
	defer talk.Close()
	control, err := net.Listen("unix", filepath.Join(sockets, "control"))
	if err != nil {
		return r, err
	}
	defer control.Close()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd, err := leash(ctx, q.Program, append(q.Args, l.arguments(m, talk.Addr().String(), control.Addr().String())...))
	if err != nil {
		return r, err
	}
	cmd.Env = append(cmd.Environ(), q.Env...)
	console, err := os.Create(filepath.Join(dir, "console.log"))
	if err != nil {
		return r, err
	}
	defer console.Close()
	fmt.Fprintln(console, "#", strings.Join(append([]string{q.Program}, cmd.Args[5:]...), " "))
	cmd.Stdout, cmd.Stderr = console, console
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return r, fmt.Errorf("start %s: %w", q.Program, err)
	}
	// When QEMU ends, so do its connections, and waiting for them.
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		talk.Close()
		control.Close()
		ended <- err
	}()
	err = r.listen(talk, control, m.orders(), dir, begun)
	if err != nil {
		cancel()
	}
	qemu := <-ended
	r.Total = time.Since(begun)
	if err != nil || qemu != nil {
		text, _ := os.ReadFile(console.Name())
		return r, fmt.Errorf("run machine %q: %w; the end of %s:\n%s", m.Name, errors.Join(err, qemu, context.Cause(ctx)), console.Name(), tail(string(text), 40))
	}
	return r, nil
}

// arguments are the command line of QEMU.
func (l *Lab) arguments(m Machine, talk, control string) []string {
	// The kernel counts ticks for a moment to see whether the timer works (arch/x86/kernel/apic/io_apic.c,
	// timer_irq_works). On a busy host too few come, and it gives up.
	boot := append([]string{"console=ttyS0", "panic=-1", "loglevel=5", "no_timer_check", "pose=" + strings.Join(m.Poses, ";")}, m.Boot...)
	return append(m.Args, "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio",
		"-chardev", "socket,id=talk,path="+talk, "-chardev", "socket,id=control,path="+control,
		"-mon", "chardev=control,mode=control",
		"-device", "virtio-serial-pci,bus=pcie.0,addr=1d.0", "-device", "virtserialport,chardev=talk,name="+wire.Port,
		"-kernel", l.Kernel, "-initrd", l.Initramfs, "-append", strings.Join(boot, " "))
}

// listen takes the guest's lines until it has told all.
func (r *Report) listen(talk, control net.Listener, o wire.Orders, dir string, begun time.Time) error {
	monitor, err := control.Accept()
	if err != nil {
		return fmt.Errorf("wait for QEMU's monitor: %w", err)
	}
	defer monitor.Close()
	guest, err := talk.Accept()
	if err != nil {
		return fmt.Errorf("wait for the guest's port: %w", err)
	}
	defer guest.Close()
	log, err := os.Create(filepath.Join(dir, pluginLog))
	if err != nil {
		return err
	}
	defer log.Close()
	if err := json.NewEncoder(guest).Encode(o); err != nil {
		return fmt.Errorf("send the guest its orders: %w", err)
	}
	q := &qmp{conn: monitor, lines: bufio.NewReader(monitor)}
	lines := json.NewDecoder(guest)
	for {
		var line wire.Line
		if err := lines.Decode(&line); err != nil {
			return fmt.Errorf("read the guest's next line: %w", err)
		}
		if r.Kernel == 0 {
			r.Kernel = time.Since(begun)
		}
		switch line.Kind {
		case wire.Result:
			r.Results[line.Name] = line
			fmt.Fprintf(log, "# %s: %s, %v\n", line.Name, line.Took.Round(time.Millisecond), line.Errors)
		case wire.Table:
			r.Tables = append(r.Tables, line)
		case wire.Log:
			fmt.Fprintln(log, line.Text)
		case wire.QMP:
			if err := json.NewEncoder(guest).Encode(q.do(line.Command)); err != nil {
				return fmt.Errorf("answer the guest: %w", err)
			}
		case wire.Done:
			return nil
		}
	}
}

// qmp is QEMU's monitor.
type qmp struct {
	conn  io.Writer
	lines *bufio.Reader
	ready bool
}

// do carries out a command.
func (q *qmp) do(command json.RawMessage) wire.Answer {
	if !q.ready {
		if a := q.send(json.RawMessage(`{"execute":"qmp_capabilities"}`)); a.Error != "" {
			return a
		}
		q.ready = true
	}
	return q.send(command)
}

// send sends a command and passes over events until the answer comes.
func (q *qmp) send(command json.RawMessage) wire.Answer {
	if _, err := fmt.Fprintf(q.conn, "%s\n", command); err != nil {
		return wire.Answer{Error: err.Error()}
	}
	for {
		text, err := q.lines.ReadBytes('\n')
		if err != nil {
			return wire.Answer{Error: err.Error()}
		}
		var reply struct {
			Return json.RawMessage
			Error  *struct{ Desc string }
		}
		if err := json.Unmarshal(text, &reply); err != nil {
			return wire.Answer{Error: err.Error()}
		}
		if reply.Error != nil {
			return wire.Answer{Error: reply.Error.Desc}
		}
		if reply.Return != nil {
			return wire.Answer{Return: reply.Return}
		}
	}
}
