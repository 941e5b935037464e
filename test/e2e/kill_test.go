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

// TestKill: whenever the plugin is killed, it leaves CDI specs that are whole, and the next start
// mends everything, although the node has changed meanwhile and kubelet restarts now and then.
//
// The specs are read twice for each kill. As the killed plugin left them, nothing may be in them
// but devices, with their nodes, that were there at some moment since it last had caught up;
// where nothing has changed since, just those. When the next life has caught up, they have to
// name just what is there. A third of the kills come as a spec is being written: with a plugin
// that writes in place they find half a spec.
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
		n.kill(r, i)
		n.died()
		if i%10 == 5 {
			n.must(n.Kubelet.Stop())
			n.must(n.StartKubelet(n.ctx))
		}
		n.must(n.StartPlugin(n.ctx))
		if err := n.AwaitAll(n.ctx); err != nil {
			t.Fatalf("kill %d: %v", i, err)
		}
		n.isTrue(fmt.Sprintf("life after kill %d", i))
		n.nothingLeft(fmt.Sprintf("kill %d", i))
	}
}

// kill kills a plugin that has caught up: at rest, just after a change, during one, or while it
// writes a spec.
func (n *node) kill(r *rand.Rand, i int) {
	n.t.Helper()
	was := record{}
	was.note(n)
	switch {
	case i%10 == 9:
		when := fmt.Sprintf("kill %d, at rest", i)
		n.must(n.Plugin.Kill())
		n.isTrue(when)
		n.churn(r, was)
	case i%3 == 0: // at whatever it is doing just now
		n.churn(r, was)
		n.must(n.Plugin.Kill())
		n.wasTrue(fmt.Sprintf("kill %d, after a change", i), was)
		n.churn(r, was)
	case i%3 == 1:
		killed := make(chan error, 1)
		n.onWrite(1+r.IntN(2), func() { killed <- n.Plugin.Kill() })
		n.change(r, was)
		select {
		case err := <-killed:
			n.must(err)
		case <-n.ctx.Done():
			n.t.Fatalf("kill %d: wait for a write: %v", i, n.ctx.Err())
		}
		n.wasTrue(fmt.Sprintf("kill %d, during a write", i), was)
	default:
		killed := make(chan error, 1)
		delay := time.Duration(r.IntN(15000)) * time.Microsecond
		time.AfterFunc(delay, func() { killed <- n.Plugin.Kill() })
		n.churn(r, was)
		n.must(<-killed)
		n.wasTrue(fmt.Sprintf("kill %d, during a change", i), was)
	}
}

// churn binds or unbinds a few functions, and notes what is there after each.
func (n *node) churn(r *rand.Rand, was record) {
	for range 1 + r.IntN(3) {
		all := n.Functions()
		f := all[r.IntN(len(all))]
		if f.Vendor != 0x10de {
			continue
		}
		n.flip(f.Address().String())
		was.note(n)
	}
}

// change binds or unbinds one function, so that a spec is written and not removed.
func (n *node) change(r *rand.Rand, was record) {
	for all := n.Functions(); ; {
		f := all[r.IntN(len(all))]
		_, bound := n.Cdev(f.Address())
		class := f.Class.Sub()
		if f.Vendor == 0x10de && (class == 0x0302 || class == 0x0680) && (!bound || len(n.Bound(class)) > 1) {
			n.flip(f.Address().String())
			was.note(n)
			return
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
