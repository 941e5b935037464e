package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"kata-device-plugin/test/harness"
)

// list is one device list, as it arrived in kubelet.
type list struct {
	at           time.Time
	all, healthy []string
}

// stream is all device lists of one resource, in order.
type stream chan list

// listen starts kubelet and the plugin, and returns the lists of each resource from the
// first one on, which it has checked and taken.
func (n *node) listen() map[string]stream {
	n.t.Helper()
	streams := map[string]stream{harness.GPU: make(stream, 1000), harness.NVSwitch: make(stream, 1000)}
	n.Options.Listed = func(resource string, sent *api.ListAndWatchResponse) {
		l := list{at: time.Now()}
		for _, d := range sent.GetDevices() {
			l.all = append(l.all, d.GetID())
			if d.GetHealth() == api.Healthy {
				l.healthy = append(l.healthy, d.GetID())
			}
		}
		slices.Sort(l.all)
		slices.Sort(l.healthy)
		streams[resource] <- l
	}
	n.start()
	n.next(streams, harness.GPU)
	n.next(streams, harness.NVSwitch)
	return streams
}

// next takes the next list of a resource, which has to say what is true now. An earlier one
// that says something else, or the same as the one before, was sent without a change.
func (n *node) next(streams map[string]stream, resource string) list {
	n.t.Helper()
	want := map[string]func() []string{harness.GPU: n.GPUs, harness.NVSwitch: n.NVSwitches}[resource]()
	select {
	case l := <-streams[resource]:
		if !slices.Equal(l.healthy, want) {
			n.t.Fatalf("%s: kubelet was sent %v, there are %v: a list without a change", resource, l.healthy, want)
		}
		return l
	case <-n.ctx.Done():
		n.t.Fatalf("%s: wait for a list with %v: %v", resource, want, n.ctx.Err())
	}
	return list{}
}

// flip binds or unbinds a function, and returns the time at which the kernel would be done.
func (n *node) flip(id string) time.Time {
	n.t.Helper()
	a := n.address(id)
	if _, bound := n.Cdev(a); bound {
		n.must(n.Unbind(a))
	} else {
		n.must(n.Bind(a, "vfio-pci"))
	}
	return time.Now()
}

// TestPrompt: kubelet has a change within 100 ms, and for each change one message, in which
// no ID is missing.
//
// The time is that from the end of the change until the list has come through kubelet's own
// client. It is held against the design's number as a median, since a single figure is also
// about what else the machine does; it may be negative, because the plugin need not wait for
// the end of an unbind.
func TestPrompt(t *testing.T) {
	n := newNode(t, "hgx-h100")
	streams := n.listen()
	ids := map[string][]string{harness.GPU: n.GPUs(), harness.NVSwitch: n.NVSwitches()}
	var took []time.Duration
	for resource, all := range ids {
		for i := range 2 * len(all) {
			done := n.flip(all[i/2])
			l := n.next(streams, resource)
			took = append(took, l.at.Sub(done).Round(10*time.Microsecond))
			if !slices.Equal(l.all, all) {
				t.Errorf("%s: the list has %v, announced were %v", resource, l.all, all)
			}
		}
	}
	t.Logf("from change to announcement, in order: %v", took)
	slices.Sort(took)
	median, last := took[len(took)/2], took[len(took)-1]
	t.Logf("of %d changes: median %v, longest %v", len(took), median, last)
	if median >= 100*time.Millisecond {
		t.Errorf("half of the changes took %v or more to be announced", median)
	}
}

// TestNoMessage: what happens in the watched directories and changes no device is not told
// to kubelet. That the plugin has looked is seen from the specs, which are removed and which it
// puts back; that it sent nothing, from the next message, which is that of a change made
// afterwards.
//
// A resync comes every 30 s; that nothing is sent then is TestQuiet's of internal/agent, where
// it is every millisecond.
func TestNoMessage(t *testing.T) {
	n := newNode(t, "hgx-h100")
	streams := n.listen()
	gpus, switches := n.GPUs(), n.NVSwitches()
	for i := range 6 {
		for _, dir := range []string{n.Roots.VFIO(), n.Roots.VFIODevices(), n.Roots.DevicePlugins, n.Roots.CDI} {
			n.stir(filepath.Join(dir, fmt.Sprintf("unrelated-%d", i)))
		}
		specs, err := filepath.Glob(filepath.Join(n.Roots.CDI, "*.json"))
		n.must(err)
		for _, spec := range specs {
			n.must(os.Remove(spec))
		}
		n.must(n.AwaitAll(n.ctx))
		n.flip(gpus[i%2])
		n.next(streams, harness.GPU)
		n.flip(switches[i%2])
		n.next(streams, harness.NVSwitch)
		n.must(n.AwaitAll(n.ctx))
	}
}

// stir makes, writes, renames and removes a file.
func (n *node) stir(path string) {
	n.t.Helper()
	n.must(os.WriteFile(path, []byte("text"), 0o600))
	n.must(os.Chmod(path, 0o644))
	n.must(os.Rename(path, path+"-2"))
	n.must(os.Remove(path + "-2"))
}
