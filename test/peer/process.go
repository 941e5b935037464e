package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"syscall"

	"kata-device-plugin/test/peer/wire"
)

// Exit says how a process ended.
type Exit struct {
	Code   int            // -1 if a signal ended it
	Signal syscall.Signal // 0 if it exited by itself
}

func (e Exit) String() string {
	if e.Signal != 0 {
		return "ended by " + e.Signal.String()
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Process is one that runs inside a node. It ends with the node at the latest.
type Process struct {
	name string
	pid  int // inside
	conn net.Conn

	orders sync.Mutex
	exited chan struct{} // closed once exit or err is set
	exit   Exit
	err    error
}

// request opens a connection to the node's first process and sends the request.
func (b *box) request(ctx context.Context, r wire.Request) (net.Conn, *bufio.Reader, wire.Event, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", filepath.Join(b.dir, wire.ControlEnd))
	if err != nil {
		return nil, nil, wire.Event{}, fmt.Errorf("reach the node's first process: %w", err)
	}
	var e wire.Event
	reader := bufio.NewReader(conn)
	if err = json.NewEncoder(conn).Encode(r); err == nil {
		e, err = event(reader)
	}
	if err != nil {
		return nil, nil, e, errors.Join(err, conn.Close())
	}
	return conn, reader, e, nil
}

func event(r *bufio.Reader) (e wire.Event, err error) {
	line, err := r.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &e)
	}
	if err != nil {
		return e, fmt.Errorf("hear from the node's first process: %w", err)
	}
	if e.Error != "" {
		return e, errors.New(e.Error)
	}
	return e, nil
}

// start runs a program inside the node.
func (b *box) start(ctx context.Context, name string, s wire.Start) (*Process, error) {
	conn, r, e, err := b.request(ctx, wire.Request{Start: &s})
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{name: name, pid: e.PID, conn: conn, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		defer conn.Close()
		e, err := event(r)
		p.exit, p.err = Exit{Code: e.Code, Signal: syscall.Signal(e.Signal)}, err
	}()
	return p, nil
}

// PID is the process's number inside the node.
func (p *Process) PID() int { return p.pid }

// Signal sends a signal. A process that has gone is no error.
func (p *Process) Signal(s syscall.Signal) error {
	p.orders.Lock()
	defer p.orders.Unlock()
	select {
	case <-p.exited:
		return nil
	default:
	}
	if err := json.NewEncoder(p.conn).Encode(wire.Order{Signal: int(s)}); err != nil {
		select {
		case <-p.exited: // meanwhile
			return nil
		default:
		}
		return fmt.Errorf("send %s to %s: %w", s, p.name, err)
	}
	return nil
}

// Wait waits until the process has gone.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.exited:
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("wait for %s to end: %w", p.name, context.Cause(ctx))
	}
	if p.err != nil {
		return Exit{}, fmt.Errorf("wait for %s to end: %w", p.name, p.err)
	}
	return p.exit, nil
}

// end sends a signal and waits until the process has gone.
func (p *Process) end(ctx context.Context, s syscall.Signal) (Exit, error) {
	if err := p.Signal(s); err != nil {
		return Exit{}, err
	}
	return p.Wait(ctx)
}

// dial connects to a TCP address inside the node.
func (b *box) dial(ctx context.Context, _, address string) (net.Conn, error) {
	conn, r, _, err := b.request(ctx, wire.Request{Dial: address})
	if err != nil {
		return nil, fmt.Errorf("dial %s inside the node: %w", address, err)
	}
	return &dialed{Conn: conn, r: r}, nil
}

// dialed is a connection of which the reader may have taken some bytes already.
type dialed struct {
	net.Conn
	r *bufio.Reader
}

func (d *dialed) Read(b []byte) (int, error) { return d.r.Read(b) }
