package collect

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/capture"
)

// pluginsDir is where device plugins have their sockets, wherever the rest of kubelet's is.
const pluginsDir = kubeletDir + "/device-plugins"

// sockets notes what is in the directories of plugins, and whether somebody listens. It connects
// and says nothing: a server of gRPC waits for the client's first words, and takes the end for a
// client that changed its mind.
func (n *node) sockets(ctx context.Context) {
	for _, dir := range []string{pluginsDir, path.Join(n.Kubelet, "plugins_registry")} {
		for _, name := range n.list(dir) {
			e := n.examine(path.Join(dir, name))
			if e == nil || e.Kind != capture.Socket {
				continue
			}
			e.State, e.Unread = n.connect(ctx, e.Path), false
			n.c.Add(*e)
		}
	}
}

// connect says what became of a connection.
func (n *node) connect(ctx context.Context, socket string) string {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	conn, err := dial(ctx, n.real(socket))
	if err == nil {
		err = conn.Close()
	}
	switch {
	case err == nil:
		return capture.Accepted
	case errors.Is(err, syscall.ECONNREFUSED):
		return capture.Refused
	case ctx.Err() != nil:
		return "no answer in " + connectTime.String()
	}
	if f := capture.FailureOf("connect", err); f.Name != "" {
		return f.Name
	}
	return strings.Join(strings.Fields(n.told(err).Error()), " ")
}

// maxSocket is the longest path that connect(2) takes, and Go.
const maxSocket = 107

// dial connects to a socket, also to one whose path is too long for it.
func dial(ctx context.Context, socket string) (net.Conn, error) {
	if len(socket) > maxSocket {
		dir, err := unix.Open(filepath.Dir(socket), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open the directory of %s: %w", socket, err)
		}
		defer unix.Close(dir) // a path, and nothing to lose
		socket = fmt.Sprintf("/proc/self/fd/%d/%s", dir, filepath.Base(socket))
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}
