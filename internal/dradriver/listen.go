package dradriver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"kata-device-plugin/internal/unixsock"
)

// listen makes a socket for the helper that answers this process's user alone, which kubelet's is.
// The helper's own would have the mode of the umask, and ask nobody who he is.
func (d *Driver) listen(_ context.Context, path string) (net.Listener, error) {
	// After a kill the name is taken. It has the pod's UID in it, so nobody listens there.
	if err := removeSocket(path); err != nil {
		return nil, err
	}
	l, err := unixsock.Listen(path, d.log)
	if err != nil {
		return nil, err
	}
	return &socket{Listener: l, path: path}, nil
}

// listenForRegistration does so in kubelet's registry, at the name that socketsOf gives. kubelet looks into the
// directory, so nobody has to be told the name.
func (d *Driver) listenForRegistration(ctx context.Context, _ string) (net.Listener, error) {
	return d.listen(ctx, socketsOf(d.registry(), d.data(), d.options.Pod)[0])
}

// socket takes its name with it when it is closed, as the helper expects.
type socket struct {
	net.Listener
	path string
}

// Close ends listening.
func (s *socket) Close() error {
	return errors.Join(s.Listener.Close(), removeSocket(s.path))
}

func removeSocket(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove a socket: %w", err)
	}
	return nil
}
