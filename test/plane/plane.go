//go:build !kubernetes134

// Package plane is a whole cluster inside a test's process: etcd, the API server with its
// admission and authorization, the scheduler, the controllers of claims and device taints,
// and for each node the parts of kubelet that a DRA driver meets.
//
// All of it is Kubernetes' own code, so what it accepts, drops, allocates or gets wrong is
// what a cluster would. There is no container runtime and no root: a pod "runs" once its
// claims are prepared. A driver under test is a process of its own, or the helper in
// process; it gets a kubeconfig and directories and needs to know nothing of this package.
//
// Feature gates belong to the process. So there is one plane at a time, tests that use one
// do not run in parallel, and with Options.Emulate all parts behave as the older version
// as far as gates go.
package plane

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Options say what the cluster is like. The zero value is the newest version as it comes.
type Options struct {
	// Emulate is an older version, such as "1.34". The API server then drops what that
	// version did not know, and the gates of all parts have its defaults.
	Emulate string
	// Gates are feature gates that differ from their defaults.
	Gates map[string]bool
	// Flags are further flags of the API server.
	Flags []string
}

// Plane is a running cluster.
type Plane struct {
	options Options
	dir     string // of certificates, the audit log and etcd's data
	log     *journal
	door    *door
	admin   *rest.Config
	client  kubernetes.Interface

	stand       *stand // the test, as the API server sees it
	store       *embed.Etcd
	server      server
	controllers *controllers
}

// Quiet keeps what Kubernetes logs off the process's stderr. It is for TestMain, before
// anything logs: klog's flags have no lock. Each plane shows the end of its log when its
// test has failed.
func Quiet() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL", "one_output": "true"} {
		if err := flags.Set(name, value); err != nil {
			klog.Background().Error(err, "Log flag is gone", "flag", name)
		}
	}
	klog.SetOutput(io.Discard)
}

// Start starts a cluster without nodes. It ends with the test.
func Start(t testing.TB, o Options) *Plane {
	t.Helper()
	dir, err := os.MkdirTemp("", "plane")
	if err != nil {
		t.Fatalf("make a directory for the control plane: %v", err)
	}
	p := &Plane{options: o, dir: dir, log: &journal{}}
	p.stand = &stand{TB: t, log: p.log}
	klog.SetOutput(p.log)
	t.Cleanup(func() {
		if err := p.close(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
		klog.SetOutput(io.Discard)
		if t.Failed() {
			t.Logf("the end of the log of Kubernetes:\n%s", p.log)
		}
	})
	if err := p.start(); err != nil {
		t.Fatalf("start the control plane: %v", err)
	}
	return p
}

// Config is the configuration of a client that may do everything.
func (p *Plane) Config() *rest.Config { return rest.CopyConfig(p.admin) }

// Client is a client that may do everything.
func (p *Plane) Client() kubernetes.Interface { return p.client }

// Cut makes the API server unreachable, for clients that are connected too. It runs on.
func (p *Plane) Cut() { p.door.shut() }

// Mend ends what Cut has begun.
func (p *Plane) Mend() { p.door.open(p.server.address()) }

func (p *Plane) start() (err error) {
	if p.door, err = newDoor(); err != nil {
		return err
	}
	if p.admin, err = p.certify(); err != nil {
		return err
	}
	if p.client, err = kubernetes.NewForConfig(p.admin); err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	if err := p.policy(); err != nil {
		return err
	}
	return p.run(filepath.Join(p.dir, "etcd"), nil)
}

// run starts everything that Restore starts anew, on data in an empty directory.
func (p *Plane) run(data string, keys []entry) (err error) {
	if p.store, err = startStore(data, filepath.Join(p.dir, "etcd.log")); err != nil {
		return err
	}
	if err := fill(p.store, keys); err != nil {
		return err
	}
	if p.server, err = p.serve(); err != nil {
		return err
	}
	p.Mend()
	p.controllers, err = startControllers(p.context(), p.as("controllers"))
	return err
}

// halt stops what run has started, in the other order.
func (p *Plane) halt() {
	if p.controllers != nil {
		p.controllers.stop()
		p.controllers = nil
	}
	p.server.stop()
	p.server = server{}
	p.stand.finish()
	if p.store != nil {
		p.store.Close()
		p.store = nil
	}
}

func (p *Plane) close() error {
	p.halt()
	if p.door != nil {
		p.door.close()
	}
	return os.RemoveAll(p.dir)
}

// gates is the value of the flag --feature-gates.
func (o Options) gates() []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(o.Gates)) {
		list = append(list, fmt.Sprintf("%s=%v", name, o.Gates[name]))
	}
	return list
}
