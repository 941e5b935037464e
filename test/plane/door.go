//go:build !kubernetes134

package plane

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// door is the address of the API server that clients know. It stays while the server
// behind it is replaced, and can be shut.
type door struct {
	listener net.Listener
	guests   sync.WaitGroup

	mu     sync.Mutex
	to     string // empty: shut
	inside map[net.Conn]struct{}
}

func newDoor() (*door, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for clients of the API server: %w", err)
	}
	d := &door{listener: l, inside: map[net.Conn]struct{}{}}
	d.guests.Go(d.serve)
	return d, nil
}

func (d *door) address() string { return d.listener.Addr().String() }

// open lets clients through to an address.
func (d *door) open(to string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to = to
}

// shut ends all connections and lets nobody through.
func (d *door) shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.to = ""
	for c := range d.inside {
		_ = c.Close() // its two copiers see the end of it
	}
}

func (d *door) close() {
	_ = d.listener.Close()
	d.shut()
	d.guests.Wait()
}

func (d *door) serve() {
	for {
		guest, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			d.guests.Go(func() { d.lead(guest) })
		}
	}
}

// lead connects a client with the server until one of them has enough.
func (d *door) lead(guest net.Conn) {
	defer guest.Close()
	d.mu.Lock()
	to := d.to
	d.mu.Unlock()
	if to == "" {
		return
	}
	host, err := net.Dial("tcp", to)
	if err != nil {
		return // the client sees what it would see of a server that is gone
	}
	defer host.Close()
	if !d.enter(to, guest, host) {
		return
	}
	defer d.leave(guest, host)
	var copiers sync.WaitGroup
	copiers.Go(func() { pump(guest, host) })
	copiers.Go(func() { pump(host, guest) })
	copiers.Wait()
}

func pump(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

// enter is false when the door was shut meanwhile.
func (d *door) enter(to string, conns ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.to != to {
		return false
	}
	for _, c := range conns {
		d.inside[c] = struct{}{}
	}
	return true
}

func (d *door) leave(conns ...net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range conns {
		delete(d.inside, c)
	}
}
