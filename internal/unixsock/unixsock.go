// Package unixsock listens on Unix sockets for peers that run as the same user.
package unixsock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// MaxPath is the longest path that a socket can be bound to: sun_path has 108 bytes
// (unix(7)), and Go keeps one for the terminating zero.
const MaxPath = 107

// Listen makes a socket of mode 0600 and listens on it. Connections of a peer with
// another uid than this process's are closed as soon as they are accepted: the
// directories of plugin sockets are readable by more users than may talk to them.
func Listen(path string, log *slog.Logger) (net.Listener, error) {
	if len(path) > MaxPath {
		return nil, fmt.Errorf("listen on %s: the path has %d bytes, a socket's may have %d; use a shorter directory", path, len(path), MaxPath)
	}
	lc := net.ListenConfig{Control: private}
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err // an *OpError, which names the path
	}
	unixListener, ok := l.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(fmt.Errorf("listen on %s: not a Unix socket", path), l.Close())
	}
	// The owner removes the path: it knows whether it is still its own.
	unixListener.SetUnlinkOnClose(false)
	return &listener{UnixListener: unixListener, uid: uint32(os.Geteuid()), log: log}, nil
}

// private sets the mode before the socket gets its name, so that there is no moment
// with a wider one: bind takes the mode of the socket's inode (net/unix/af_unix.c).
func private(_, _ string, c syscall.RawConn) error {
	var err error
	if cerr := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) }); cerr != nil {
		return cerr
	}
	return err
}

type listener struct {
	*net.UnixListener
	uid uint32
	log *slog.Logger
}

// Accept waits for the next connection of our own uid.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		uid, err := peer(conn)
		if err == nil && uid == l.uid {
			return conn, nil
		}
		if err != nil {
			l.log.Warn("refused a connection", "socket", l.Addr().String(), "reason", err.Error())
		} else {
			l.log.Warn("refused a connection", "socket", l.Addr().String(), "reason", fmt.Sprintf("the peer's uid is %d, ours is %d", uid, l.uid))
		}
		_ = conn.Close() // nothing was written
	}
}

// peer is the uid of the process that connected (SO_PEERCRED).
func peer(conn *net.UnixConn) (uint32, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("ask for the peer's uid: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(err, credErr); err != nil {
		return 0, fmt.Errorf("ask for the peer's uid: %w", err)
	}
	return cred.Uid, nil
}
