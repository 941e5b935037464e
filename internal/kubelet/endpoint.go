package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// SocketName is kubelet's registration socket in the device plugin directory.
const SocketName = "kubelet.sock"

// Waits between attempts. kubelet.sock's replacement ends every wait at once, so the
// upper end only matters for what sends no event.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = 10 * time.Second
)

// streamWait is how long kubelet may take from Register's answer to its stream. It
// opens the stream before it answers; this is for a kubelet that does not.
const streamWait = 10 * time.Second

// Endpoint keeps one resource registered with kubelet, for as long as Run runs.
type Endpoint struct {
	cfg  Config
	feed *feed
	kick chan struct{}

	mu     sync.Mutex
	status Status
}

// Status says how an endpoint stands with kubelet.
type Status struct {
	// Registered: kubelet has an open stream, and a list was sent on it.
	Registered bool
	// Sent is when the last list was sent in this registration.
	Sent time.Time
	// Reason says why it is not registered.
	Reason string
}

// NewEndpoint makes an endpoint. It does nothing until Run.
func NewEndpoint(cfg Config) *Endpoint {
	return &Endpoint{
		cfg: cfg, feed: newFeed(), kick: make(chan struct{}, 1),
		status: Status{Reason: "not tried yet"},
	}
}

// Announce replaces the device list. A list that is equal to the one before is not
// sent again. It reports whether it is another one.
func (e *Endpoint) Announce(devices []Device) bool { return e.feed.set(devices) }

// Repeat sends the present list once more.
func (e *Endpoint) Repeat() { e.feed.repeat() }

// Healthy is the set of healthy devices in the announced list, sorted.
func (e *Endpoint) Healthy() []string { return e.feed.healthy() }

// Kick says that something changed in the device plugin directory.
func (e *Endpoint) Kick() {
	select {
	case e.kick <- struct{}{}:
	default: // one is enough: it makes the endpoint look at everything
	}
}

// Status returns the present status.
func (e *Endpoint) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.status
}

// Run registers, and registers again, until ctx ends. It returns when the last server
// is closed and its socket removed.
func (e *Endpoint) Run(ctx context.Context) {
	if err := Sweep(e.cfg.Dir, e.cfg.SocketPrefix); err != nil {
		e.cfg.Log.Warn("could not remove sockets of earlier lives", "resource", e.cfg.Resource, "reason", err.Error())
	}
	wait := firstWait
	for ctx.Err() == nil {
		id, _ := identify(e.kubeletSocket())
		registered, err := e.life(ctx, id)
		if ctx.Err() != nil {
			break
		}
		e.lost(err)
		if registered {
			wait = firstWait
		}
		if e.pause(ctx, wait, id) {
			wait = firstWait
		} else {
			wait = min(2*wait, lastWait)
		}
	}
}

func (e *Endpoint) kubeletSocket() string { return filepath.Join(e.cfg.Dir, SocketName) }

// pause waits, and reports true when kubelet.sock was replaced meanwhile.
func (e *Endpoint) pause(ctx context.Context, wait time.Duration, id identity) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return false
		case <-e.kick:
			if now, _ := identify(e.kubeletSocket()); now != id && now != (identity{}) {
				return true
			}
		}
	}
}

// life is one server, from its socket to its end. It reports whether kubelet opened a
// stream, and why the life ended.
func (e *Endpoint) life(ctx context.Context, id identity) (registered bool, err error) {
	// A kubelet.sock that nobody listens on is the normal case while kubelet is
	// stopped. There is no point in a server then.
	if err := reachable(e.kubeletSocket()); err != nil {
		return false, err
	}
	srv, err := serve(e.cfg, e.feed, e.noteSent)
	if err != nil {
		return false, err
	}
	defer func() {
		e.unregistered()
		err = errors.Join(err, srv.close())
	}()
	if err := srv.prove(ctx); err != nil {
		return false, err
	}
	// From here on kubelet may come back at any time and remove our socket; what it
	// was asked for then fails only after ten seconds. So the attempt is given up as
	// soon as that is seen.
	alive, end := context.WithCancelCause(ctx)
	defer end(nil)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		e.guard(alive, end, srv, id)
	}()
	defer func() { end(nil); <-watching }()

	if err := register(alive, e.kubeletSocket(), filepath.Base(srv.path), e.cfg.Resource); err != nil {
		return false, errors.Join(err, context.Cause(alive))
	}
	timer := time.NewTimer(streamWait)
	defer timer.Stop()
	select {
	case <-srv.plugin.opened:
	case <-timer.C:
		return false, fmt.Errorf("register %s: kubelet accepted it and opened no stream in %v", e.cfg.Resource, streamWait)
	case <-alive.Done():
		return false, context.Cause(alive)
	}
	e.cfg.Log.Info("registered with kubelet", "resource", e.cfg.Resource, "socket", srv.path)
	select {
	case <-srv.plugin.ended:
		return true, errors.New("kubelet ended the connection")
	case <-srv.served:
		return true, errors.New("the server ended")
	case <-alive.Done():
		return true, context.Cause(alive)
	}
}

// guard ends a life when our socket is gone or kubelet.sock is another one.
func (e *Endpoint) guard(ctx context.Context, end context.CancelCauseFunc, srv *server, id identity) {
	for {
		now, err := identify(e.kubeletSocket())
		switch {
		case !srv.there():
			end(errors.New("our socket was removed, as kubelet does when it starts"))
			return
		case err == nil && now != (identity{}) && now != id:
			end(errors.New("kubelet.sock was replaced"))
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-e.kick:
		}
	}
}

func (e *Endpoint) noteSent() {
	e.change(func(s *Status) { *s = Status{Registered: true, Sent: time.Now()} })
}

func (e *Endpoint) unregistered() {
	e.change(func(s *Status) { s.Registered = false })
}

// lost notes why there is no registration, and logs it when the reason is another one.
func (e *Endpoint) lost(err error) {
	reason := "unknown"
	if err != nil {
		reason = err.Error()
	}
	e.change(func(s *Status) {
		if s.Reason != reason {
			level := slog.LevelWarn
			if errors.Is(err, errNoKubelet) {
				level = slog.LevelInfo
			}
			e.cfg.Log.Log(context.Background(), level, "not registered with kubelet", "resource", e.cfg.Resource, "reason", reason)
		}
		s.Registered, s.Reason = false, reason
	})
}

func (e *Endpoint) change(f func(*Status)) {
	e.mu.Lock()
	f(&e.status)
	e.mu.Unlock()
	e.cfg.Changed()
}

// identity tells one kubelet.sock from the next. Inode numbers are used again, so the
// time of the change counts too. The zero value stands for no socket.
type identity struct {
	dev, ino uint64
	ctime    unix.Timespec
}
