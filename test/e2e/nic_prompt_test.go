package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kata-device-plugin/test/harness"
)

// TestNICPrompt: kubelet has a change of a VF within 100 ms, as one list. What TestPrompt says
// of the median holds here too.
func TestNICPrompt(t *testing.T) {
	n := adapters(t)
	n.run()
	n.all()
	a := n.address("0000:65:00.3")
	var took []time.Duration
	for i := range 40 {
		before, _ := n.judge.count(nicVFIO)
		var want []string
		if i%2 == 0 {
			n.must(n.Unbind(a))
		} else {
			n.must(n.Bind(a, "vfio-pci"))
			want = append(want, a.String())
		}
		done := time.Now()
		n.await(nicVFIO, want...)
		count, at := n.judge.count(nicVFIO)
		if count != before+1 {
			t.Errorf("change %d took %d lists", i, count-before)
		}
		took = append(took, at.Sub(done))
	}
	slices.Sort(took)
	t.Logf("of %d changes: median %v, longest %v", len(took), took[len(took)/2], took[len(took)-1])
	if median := took[len(took)/2]; median >= 100*time.Millisecond {
		t.Errorf("half of the changes took %v or more to be announced", median)
	}
}

// TestNICNoMessage: what happens and changes no device is not told to kubelet. That the plugin
// has looked is seen from the specs, which it puts back.
func TestNICNoMessage(t *testing.T) {
	n := adapters(t)
	n.run()
	n.all()
	before := map[string]int{}
	for _, resource := range n.Kubelet.Resources() {
		before[resource], _ = n.judge.count(resource)
	}
	for i := range 6 {
		for _, dir := range []string{n.Roots.VFIO(), n.Roots.DevicePlugins, n.Roots.CDI, filepath.Dir(n.config), filepath.Join(n.Roots.Dev, "infiniband")} {
			n.stir(filepath.Join(dir, fmt.Sprint("unrelated-", i)))
		}
		n.configure(everything + fmt.Sprintf("%*s", i+1, "\n")) // other bytes that mean the same
		n.RemoveDefaultRoutes()
		n.AddDefaultRoute("eno1", []string{"inet", "inet6"}[i%2])
		n.happened()
		spec := filepath.Join(n.Roots.CDI, "kata.nic.intel.com-vfio.json")
		n.must(os.Remove(spec))
		n.must(n.Kubelet.Await(n.ctx, func() bool { _, err := os.Stat(spec); return err == nil }))
	}
	n.must(n.Unbind(n.address("0000:65:00.3")))
	n.await(nicVFIO)
	for resource, count := range before {
		want := count
		if resource == nicVFIO {
			want++
		}
		if got, _ := n.judge.count(resource); got != want {
			t.Errorf("%s: %d lists without a change", resource, got-want)
		}
	}
}

// TestNICUntold: a VF loses its driver and nobody tells. No pod gets it.
func TestNICUntold(t *testing.T) {
	n := adapters(t)
	n.run()
	n.all()
	a := n.address("0000:65:00.2")
	n.must(n.Unbind(a))
	n.links()
	n.refused(nicNet, 1, "UnexpectedAdmissionError", "HST036")
	n.must(n.Bind(a, "mlx5_core"))
	n.happened()
	n.await(nicNet, a.String())
	n.admit(nicNet, 1)
}

// TestNICUnreadable: what cannot be read is not gone. To a plugin that never could read which
// interfaces the host uses, none is free, and that is said.
func TestNICUnreadable(t *testing.T) {
	n := adapters(t)
	n.run()
	n.all()
	a := n.address("0000:65:00.2")
	n.must(n.BreakAttribute(a, "class"))
	links := filepath.Join(n.Dir, "netlink", "links.json")
	n.replace(links, "{")
	n.must(n.Plugin.Hangup())
	n.awaitLog("found", "HST031", a.String())
	n.all()
	n.must(n.RestoreAttribute(a, "class"))

	n.must(n.Plugin.Kill())
	n.gone()
	n.restarted()
	n.all() // the links can be read

	n.must(n.Plugin.Kill())
	n.gone()
	ready := n.logged(`"msg":"ready"`)
	n.judge.life()
	n.replace(links, "{")
	n.must(n.StartPlugin(n.ctx))
	n.await(nicVFIO, "0000:65:00.3")
	n.awaitLog("found", "HST040", nicNet)
	n.await(nicNet)
	if n.logged(`"msg":"ready"`) > ready {
		t.Error("it says that it is ready")
	}
	n.happened()
	n.must(n.Kubelet.Await(n.ctx, func() bool { return n.logged(`"msg":"ready"`) > ready }))
	n.all()
	n.admit(nicNet, 1)
}

// TestNICTwo: a second plugin for the same resources waits until the first one has ended, and
// takes over.
func TestNICTwo(t *testing.T) {
	n, pods := occupied(t)
	other := &log{}
	second, err := harness.StartPlugin(n.ctx, n.Binary, n.Dir, other, n.Args...)
	n.must(err)
	t.Cleanup(func() {
		n.must(second.Kill())
		if t.Failed() {
			t.Log(other)
		}
	})
	for _, resource := range n.Kubelet.Resources() {
		n.must(n.Kubelet.Await(n.ctx, func() bool { return logged(other.String(), "found", "PLG018", resource) > 0 }))
	}
	n.all()
	n.same(pods)
	if logged(other.String(), "registered with kubelet") > 0 {
		t.Error("the second registered beside the first")
	}
	n.judge.life()
	n.must(n.Plugin.Kill())
	for _, resource := range n.Kubelet.Resources() {
		n.must(n.Kubelet.Await(n.ctx, func() bool { return logged(other.String(), "registered with kubelet", resource) > 0 }))
	}
	n.all()
	n.same(pods)
}
