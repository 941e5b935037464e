package e2e

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the random sequences; 0 takes the time")
	kills = flag.Int("kills", 100, "how often the plugin is killed")
)

// TestKill: whenever the plugin is killed, the next start mends everything, although the
// node has changed meanwhile and kubelet restarts now and then.
func TestKill(t *testing.T) {
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: go test -run TestKill ./e2e -args -seed=%d", s, s)
	r := rand.New(rand.NewPCG(s, 2))
	n := newNode(t, "hgx-h100")
	n.start()
	for i := range *kills {
		n.churn(r)
		if i%3 == 0 { // at whatever it is doing just now
			n.must(n.Plugin.Kill())
			n.churn(r)
		} else { // in the middle of a change
			killed := make(chan error, 1)
			delay := time.Duration(r.IntN(15000)) * time.Microsecond
			time.AfterFunc(delay, func() { killed <- n.Plugin.Kill() })
			n.churn(r)
			n.must(<-killed)
		}
		if i%10 == 5 {
			n.must(n.Kubelet.Stop())
			n.must(n.StartKubelet(n.ctx))
		}
		n.must(n.StartPlugin(n.ctx))
		if err := n.AwaitAll(n.ctx); err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		n.nothingLeft(fmt.Sprintf("kill %d", i))
	}
}

// churn binds or unbinds a few functions.
func (n *node) churn(r *rand.Rand) {
	for range 1 + r.IntN(3) {
		all := n.Functions()
		f := all[r.IntN(len(all))]
		if f.Vendor != 0x10de {
			continue
		}
		if _, bound := n.Cdev(f.Address()); bound {
			n.must(n.Unbind(f.Address()))
		} else {
			n.must(n.Bind(f.Address(), "vfio-pci"))
		}
	}
}

// nothingLeft checks that no earlier life has left anything.
func (n *node) nothingLeft(when string) {
	n.t.Helper()
	sockets, _ := filepath.Glob(filepath.Join(n.Roots.DevicePlugins, "kata-*.sock"))
	if len(sockets) > 2 {
		n.t.Fatalf("%s: sockets %v", when, sockets)
	}
	torn, _ := filepath.Glob(filepath.Join(n.Roots.CDI, ".*"))
	if len(torn) > 0 {
		n.t.Fatalf("%s: %v", when, torn)
	}
}

// TestFlat: the process does not grow.
func TestFlat(t *testing.T) {
	n := newNode(t, "hgx-h100")
	n.start()
	cycle := func() {
		a := n.address(n.GPUs()[0])
		n.must(n.Unbind(a))
		n.must(n.AwaitAll(n.ctx))
		n.must(n.Bind(a, "vfio-pci"))
		n.must(n.AwaitAll(n.ctx))
		n.must(n.Kubelet.Stop())
		n.must(n.StartKubelet(n.ctx))
		n.must(n.AwaitAll(n.ctx))
	}
	cycle()
	before := n.descriptors()
	for range 20 {
		cycle()
	}
	if err := n.Kubelet.Await(n.ctx, func() bool { return n.descriptors() <= before }); err != nil {
		t.Errorf("%d file descriptors, before %d: %v", n.descriptors(), before, err)
	}
}

func (n *node) descriptors() int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", n.Plugin.PID()))
	n.must(err)
	return len(entries)
}
