package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
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
	cfg   Config
	feed  *feed
	kick  chan struct{}
	renew chan struct{}

	mu     sync.Mutex
	status Status
}

// Status says how an endpoint stands with kubelet.
type Status struct {
	// Registered: kubelet has an open stream, and a list was sent on it.
	Registered bool
	// Sent is when the last list was sent in this registration.
	Sent time.Time
	// Life counts the registrations.
	Life int
	// Reason says why it is not registered.
	Reason string
}

// NewEndpoint makes an endpoint. It does nothing until Run.
func NewEndpoint(cfg Config) *Endpoint {
	return &Endpoint{
		cfg: cfg, feed: newFeed(), kick: make(chan struct{}, 1), renew: make(chan struct{}, 1),
		status: Status{Reason: "not tried yet"},
	}
}

// Announce replaces the device list. A list that is equal to the one before is not
// sent again. It reports whether it is another one.
func (e *Endpoint) Announce(devices []Device) bool { return e.feed.set(devices) }

// Renew ends the present registration and makes a new one. It is for the case that
// another plugin for the resource has left: kubelet goes on to believe that plugin's
// list, and a kubelet that knows one endpoint a resource takes ours for stopped, so that
// a list alone would make pods be admitted that then cannot be started.
func (e *Endpoint) Renew() {
	select {
	case e.renew <- struct{}{}:
	default: // one is enough
	}
}

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
	wait := firstWait
	for ctx.Err() == nil {
		id, _ := identify(e.kubeletSocket())
		began := time.Now()
		err := e.life(ctx, id)
		if ctx.Err() != nil {
			break
		}
		e.lost(err)
		// Not after a short life: a kubelet that accepts us and hangs up would be asked
		// twenty times a second.
		if time.Since(began) > lastWait {
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
		if now, _ := identify(e.kubeletSocket()); now != id && now != (identity{}) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return false
		case <-e.kick:
		}
	}
}

// life is one server, from its socket to its end. It returns why the life ended.
func (e *Endpoint) life(ctx context.Context, id identity) (err error) {
	// A kubelet.sock that nobody listens on is the normal case while kubelet is
	// stopped. There is no point in a server then.
	if err := reachable(e.kubeletSocket()); err != nil {
		return err
	}
	path, err := socketPath(e.cfg.Dir, e.cfg.SocketPrefix)
	if err != nil {
		return err
	}
	srv, err := serve(e.cfg, path, e.feed, e.noteSent)
	if err != nil {
		return nameless(err, path, e.cfg.SocketPrefix)
	}
	defer func() {
		err = nameless(errors.Join(err, srv.close()), srv.path, e.cfg.SocketPrefix)
		e.unregistered() // last: a handler may have sent a list until now
	}()
	if err := srv.prove(ctx); err != nil {
		return err
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
		return errors.Join(err, context.Cause(alive))
	}
	timer := time.NewTimer(streamWait)
	defer timer.Stop()
	select {
	case <-srv.plugin.opened:
	case <-timer.C:
		return fmt.Errorf("register %s: kubelet accepted it and opened no stream in %v", e.cfg.Resource, streamWait)
	case <-alive.Done():
		return context.Cause(alive)
	}
	e.cfg.Log.Info("registered with kubelet", "resource", e.cfg.Resource, "socket", srv.path)
	e.change(func(s *Status) { s.Life++ })
	select {
	case <-srv.plugin.ended:
		return errors.New("kubelet ended the connection")
	case <-srv.served:
		return errors.New("the server ended")
	case <-alive.Done():
		return context.Cause(alive)
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
		case <-e.renew:
			end(errors.New("another plugin for the resource has left"))
			return
		case <-e.kick:
		}
	}
}

// nameless leaves the unique part of a socket's name out of an error. It is another one in
// each life, and would make each attempt look like another error.
func nameless(err error, path, prefix string) error {
	if err == nil || !strings.Contains(err.Error(), filepath.Base(path)) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), filepath.Base(path), prefix+"-*.sock"))
}

func (e *Endpoint) noteSent() {
	e.change(func(s *Status) { *s = Status{Registered: true, Sent: time.Now(), Life: s.Life} })
}

func (e *Endpoint) unregistered() {
	e.change(func(s *Status) { s.Registered = false })
}

// lost notes why there is no registration, and logs it when the reason is another one.
func (e *Endpoint) lost(err error) {
	reason, level := "unknown", slog.LevelWarn
	if err != nil {
		reason = err.Error()
	}
	if errors.Is(err, errNoKubelet) {
		level = slog.LevelInfo
	}
	var before string
	e.change(func(s *Status) {
		before = s.Reason
		s.Registered, s.Reason = false, reason
	})
	if before != reason {
		e.cfg.Log.Log(context.Background(), level, "not registered with kubelet", "resource", e.cfg.Resource, "reason", reason)
	}
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

func identityOf(st *unix.Stat_t) identity { return identity{dev: st.Dev, ino: st.Ino, ctime: st.Ctim} }
