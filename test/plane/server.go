//go:build !kubernetes134

package plane

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
)

// registry is where the API server's keys begin in etcd.
const registry = "/registry"

// server is a running API server, or none.
type server struct {
	port int
	end  func()
}

func (s server) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

func (s server) stop() {
	if s.end != nil {
		s.end()
	}
}

// serve starts the API server. It returns once the server is healthy, its RBAC roles
// included.
func (p *Plane) serve() (server, error) {
	storage := storagebackend.NewDefaultConfig(registry, nil)
	storage.Transport.ServerList = []string{endpoint(p.store)}
	s, err := apiserver.StartTestServer(p.stand, &apiserver.TestServerInstanceOptions{EnableCertAuth: true, DisableInvariantChecks: true}, p.flags(), storage)
	if err != nil {
		return server{}, fmt.Errorf("start the API server: %w", err)
	}
	return server{port: s.ServerOpts.SecureServing.BindPort, end: s.TearDownFn}, nil
}

// flags are the API server's. Admission is all that is on by default, policies among it,
// but for service accounts: nobody makes the default account of a namespace here.
func (p *Plane) flags() []string {
	flags := []string{
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--disable-admission-plugins=ServiceAccount",
		"--endpoint-reconciler-type=none",
		"--cert-dir=" + p.pki(), // its apiserver.crt is used, and also believed by the server itself
		"--client-ca-file=" + filepath.Join(p.pki(), "ca.crt"),
		"--audit-policy-file=" + filepath.Join(p.dir, "audit.yaml"),
		"--audit-log-path=" + p.audit(),
		"--audit-log-mode=blocking", // a request that was answered is in the log
	}
	if p.options.Emulate != "" {
		flags = append(flags, "--emulated-version="+p.options.Emulate)
	}
	if gates := p.options.gates(); gates != nil {
		flags = append(flags, "--feature-gates="+strings.Join(gates, ","))
	}
	return append(flags, p.options.Flags...)
}

// stand is the test as the API server's test support sees it. That logs each line of the
// server to the test and cleans up when the test does; here the lines go to the plane's
// log, and the cleaning is done when the server stops, which may be sooner.
type stand struct {
	testing.TB
	log     *journal
	cleanup []func()
}

// Log implements testing.TB.
func (s *stand) Log(args ...any) { _, _ = fmt.Fprintln(s.log, args...) }

// Logf implements testing.TB.
func (s *stand) Logf(format string, args ...any) { _, _ = fmt.Fprintf(s.log, format+"\n", args...) }

// Cleanup implements testing.TB.
func (s *stand) Cleanup(f func()) { s.cleanup = append(s.cleanup, f) }

// finish does what was to be done at the end. A piece of it may add another.
func (s *stand) finish() {
	for len(s.cleanup) > 0 {
		last := len(s.cleanup) - 1
		f := s.cleanup[last]
		s.cleanup = slices.Delete(s.cleanup, last, last+1)
		f()
	}
}

// context is for what runs until it is stopped, with a logger that writes to the plane's log.
func (p *Plane) context() context.Context {
	config := textlogger.NewConfig(textlogger.Output(p.log), textlogger.Verbosity(verbosity))
	return klog.NewContext(context.Background(), textlogger.NewLogger(config))
}
