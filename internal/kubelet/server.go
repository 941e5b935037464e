package kubelet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"kata-device-plugin/internal/unixsock"
)

// server is one life of the gRPC server of a resource, on a socket of its own. The
// socket's name is new for every life: kubelet 1.37 refuses a second registration on
// a path that it is connected to, and forgets the connection that it has
// (devicemanager manager.go and handler.go, kubernetes/kubernetes#139338).
type server struct {
	path   string
	grpc   *grpc.Server
	plugin *plugin
	served chan struct{} // closed when Serve has returned
}

// serve opens the socket and begins to answer.
func serve(cfg Config, path string, feed *feed, noteSent func()) (*server, error) {
	listener, err := unixsock.Listen(path, cfg.Log)
	if err != nil {
		return nil, err
	}
	s := &server{
		path: path,
		// Stop returns only when no handler runs any more: a life must be over before
		// the next one begins.
		grpc:   grpc.NewServer(grpc.WaitForHandlers(true)),
		plugin: newPlugin(cfg, feed, noteSent),
		served: make(chan struct{}),
	}
	pluginapi.RegisterDevicePluginServer(s.grpc, s.plugin)
	go func() {
		defer close(s.served)
		// An error here ends all connections, and with them the stream that the
		// endpoint watches; Stop makes it nil.
		_ = s.grpc.Serve(listener)
	}()
	return s, nil
}

// socketPath makes up the name of a new socket.
func socketPath(dir, prefix string) (string, error) {
	var unique [4]byte
	if _, err := rand.Read(unique[:]); err != nil {
		return "", fmt.Errorf("name a socket: %w", err)
	}
	return filepath.Join(dir, prefix+"-"+hex.EncodeToString(unique[:])+".sock"), nil
}

// isOurSocket says whether a name is one that socketPath makes.
func isOurSocket(name, prefix string) bool {
	middle, ok := strings.CutPrefix(name, prefix+"-")
	middle, ok2 := strings.CutSuffix(middle, ".sock")
	b, err := hex.DecodeString(middle)
	return ok && ok2 && err == nil && len(b) == 4
}

// Sweep removes the sockets that earlier lives left behind. The caller holds the
// resource's lock, so none of them can be alive.
func Sweep(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is nothing; that kubelet cannot be reached is said where it is tried
	}
	if err != nil {
		return fmt.Errorf("sweep device plugin directory: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if isOurSocket(e.Name(), prefix) && e.Type()&fs.ModeSocket != 0 {
			errs = append(errs, remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// prove asks the server a question through its socket, as kubelet will: kubelet dials
// back inside Register, and waits ten seconds for a server that does not answer.
func (s *server) prove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := dial(s.path)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := pluginapi.NewDevicePluginClient(conn).GetDevicePluginOptions(ctx, &pluginapi.Empty{}); err != nil {
		return fmt.Errorf("ask our own socket %s: %w", s.path, err)
	}
	return nil
}

// there says whether the socket is still in its place. kubelet removes all sockets
// of the directory when it starts. What cannot be looked at is not gone.
func (s *server) there() bool {
	_, err := os.Lstat(s.path)
	return !errors.Is(err, fs.ErrNotExist)
}

// close ends the life: no connection, no handler and no socket is left.
func (s *server) close() error {
	s.grpc.Stop()
	<-s.served
	return remove(s.path)
}

// dial connects to a socket when it is first used.
func dial(path string) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient("unix://"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(), grpc.WithNoProxy())
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", path, err)
	}
	return conn, nil
}
