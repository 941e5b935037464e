package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"time"

	"golang.org/x/sys/unix"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// errNoKubelet says that nobody listens on kubelet.sock.
var errNoKubelet = errors.New("kubelet is not there")

// registerTimeout is a little more than the ten seconds that kubelet itself takes to
// dial back; a shorter one would shorten that too.
const registerTimeout = 15 * time.Second

// identify looks at a socket without touching it. What is no socket is not there.
func identify(path string) (identity, error) {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	if errors.Is(err, unix.ENOENT) {
		return identity{}, nil
	}
	if err != nil {
		return identity{}, &fs.PathError{Op: "lstat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return identity{}, nil
	}
	return identityOf(&st), nil
}

// reachable connects to a socket and hangs up.
func reachable(path string) error {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("%w: %w", errNoKubelet, err)
	}
	if err != nil {
		return fmt.Errorf("reach kubelet: %w", err)
	}
	return conn.Close()
}

// register tells kubelet of the server at endpoint, a name in kubelet's directory.
func register(ctx context.Context, kubeletSocket, endpoint, resource string) error {
	ctx, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	conn, err := dial(kubeletSocket)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{
		Version:      pluginapi.Version,
		Endpoint:     endpoint,
		ResourceName: resource,
		Options:      options(), // ignored by kubelet, which asks after dialling back
	})
	if err != nil {
		return fmt.Errorf("register %s: %w", resource, err)
	}
	return nil
}
