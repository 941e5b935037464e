package kubelet

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
)

// registry is kubelet's registration server on a listener of ours. To validate a
// registration, to dial back and to read the streams stays kubelet's part.
//
// The listener differs because kubelet's own Stop is not what a plugin sees when
// kubelet restarts. There a process dies: every stream ends, also one that kubelet
// has lost track of or that is just being set up, and kubelet.sock stays behind.
// Kubelet's Stop can leave such a stream open, and removes the socket. The listener
// is also where a registration gets the logger of its own kubelet; kubelet's would
// use the one that the whole process shares.
type registry struct {
	plugin.Server
	log      klog.Logger
	register api.RegistrationServer
	cleaner  *manager
	watch    *watch
	server   *grpc.Server
	served   chan struct{}
}

func newRegistry(log klog.Logger, s plugin.Server, c *manager, w *watch) (*registry, error) {
	register, ok := s.(api.RegistrationServer)
	if !ok {
		return nil, fmt.Errorf("serve registrations: kubelet's %T takes none", s)
	}
	return &registry{Server: s, log: log, register: register, cleaner: c, watch: w}, nil
}

// Start does what kubelet's does, in the same order: the directory, its clean-up,
// the socket.
func (r *registry) Start(log klog.Logger) error {
	dir := filepath.Dir(r.SocketPath())
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the device plugin directory: %w", err)
	}
	if err := r.cleaner.CleanupPluginDirectory(log, dir); err != nil {
		return fmt.Errorf("remove old sockets from %s: %w", dir, err)
	}
	l, err := listen(r.SocketPath())
	if err != nil {
		return err
	}
	r.server = grpc.NewServer(grpc.UnaryInterceptor(logInto(r.log)))
	r.served = make(chan struct{})
	api.RegisterRegistrationServer(r.server, r.register)
	go func() {
		defer close(r.served)
		if err := r.server.Serve(l); err != nil {
			r.log.Error(err, "Registration ended", "socket", r.SocketPath())
		}
	}()
	return nil
}

// Stop ends registrations first, so that none can add a stream behind the back of
// what follows. It does not wait for those under way: kubelet 1.34 asks a plugin for
// its options without the registration's context (cm/devicemanager/manager.go,
// PluginConnected), so only the end of the connection ends them.
func (r *registry) Stop(log klog.Logger) error {
	r.watch.end()
	if r.server != nil {
		r.server.Stop()
		<-r.served
	}
	err := stopServer(log, r.Server)
	r.watch.disconnect(log)
	if err != nil {
		return fmt.Errorf("disconnect the plugins: %w", err)
	}
	return nil
}

// listen makes a unix socket that stays in place when its listener is closed, as
// the sockets of a process that died do.
func listen(path string) (net.Listener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s (a path of %d bytes, of which a unix socket takes 107): %w", path, len(path), err)
	}
	l.SetUnlinkOnClose(false)
	return l, nil
}
