package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/kubelet"
)

// nicNode is a node of a test with nic-device-plugin on it.
type nicNode struct {
	*node
	config string // the file
	info   string // the directory of device-info files
	judge  *judge
}

// The plugin's paths are below the node's directory.
const (
	nicConfig  = "/etc/nic-device-plugin/config.json"
	nicInfoDir = "/var/run/k8s.cni.cncf.io/devinfo/dp"
)

func newNICNode(t testing.TB, p sim.Platform) *nicNode {
	t.Helper()
	short, err := sim.Hold("/tmp", "kd.")
	if err != nil {
		t.Fatal(err)
	}
	var dir string
	t.Cleanup(func() { os.RemoveAll(short); os.RemoveAll(dir) }) // when what runs on the node has ended
	n := &nicNode{node: newNodeWith(t, p, nicBinary)}
	dir = n.shorten(filepath.Join(short, "n"))
	n.judge = newJudge(t, n.Roots.CDI)
	n.Options.Listed = n.judge.listed
	n.config, n.info = filepath.Join(n.Dir, nicConfig), filepath.Join(n.Dir, nicInfoDir)
	for _, dir := range []string{n.Roots.Run, n.info, filepath.Dir(n.config), filepath.Join(n.Dir, "netlink")} {
		n.must(os.MkdirAll(dir, 0o755))
	}
	return n
}

// shorten gives the node's directory a short name. A socket's path has 107 bytes at most, of
// which the name of an old plugin's resource takes so many that hardly any are left.
func (n *nicNode) shorten(name string) (old string) {
	n.t.Helper()
	old = n.Dir
	n.must(os.Symlink(old, name))
	n.Dir, n.Roots = name, host.Under(name, "nic-device-plugin")
	return old
}

// within is the node in a part of its test.
func (n *nicNode) within(t *testing.T) *nicNode {
	inner := *n.node
	inner.t = t
	return &nicNode{&inner, n.config, n.info, n.judge}
}

// run starts both kubelet and the plugin.
func (n *nicNode) run() {
	n.t.Helper()
	n.startKubelet()
	n.restarted()
}

// startKubelet starts kubelet with its PodResources API.
func (n *nicNode) startKubelet() {
	n.t.Helper()
	n.must(n.StartKubelet(n.ctx))
	n.must(n.Kubelet.PodResources(n.podResourcesSocket()))
}

func (n *nicNode) podResourcesSocket() string {
	return filepath.Join(n.Dir, "var/lib/kubelet/pod-resources/kubelet.sock")
}

// restarted starts the plugin, when kubelet knows that the one before has ended.
func (n *nicNode) restarted() {
	n.t.Helper()
	n.links()
	n.judge.life()
	n.must(n.StartPlugin(n.ctx))
}

// restartKubelet starts kubelet anew beside the plugin.
func (n *nicNode) restartKubelet() {
	n.t.Helper()
	n.must(n.Kubelet.Stop())
	n.judge.connection()
	n.startKubelet()
}

// replace writes a file as an editor does that is careful.
func (n *nicNode) replace(path, text string) {
	n.t.Helper()
	n.must(os.WriteFile(path+".new", []byte(text), 0o644))
	n.must(os.Rename(path+".new", path))
}

func (n *nicNode) configure(text string) {
	n.t.Helper()
	n.replace(n.config, text)
}

// links writes what netlink would show.
func (n *nicNode) links() {
	n.t.Helper()
	n.must(n.WriteLinks(filepath.Join(n.Dir, "netlink", "links.json")))
}

// happened stands for the kernel's news, of which a simulated node sends only what inotify
// does. The plugin has to have announced something before, or SIGHUP ends it.
func (n *nicNode) happened() {
	n.t.Helper()
	n.links()
	n.must(n.Plugin.Hangup())
}

// await waits until just these devices of a resource are allocatable.
func (n *nicNode) await(resource string, ids ...string) {
	n.t.Helper()
	slices.Sort(ids)
	if err := n.Kubelet.Await(n.ctx, func() bool { return slices.Equal(n.Kubelet.Allocatable(resource), ids) }); err != nil {
		n.t.Fatalf("wait for %s to be %v, kubelet has %v: %v", resource, ids, n.Kubelet.Allocatable(resource), err)
	}
}

// logged counts the lines of the plugin's log with all of these texts.
func (n *nicNode) logged(texts ...string) int { return logged(n.log.String(), texts...) }

func logged(log string, texts ...string) int {
	count := 0
	for line := range strings.Lines(log) {
		if !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(line, s) }) {
			count++
		}
	}
	return count
}

func (n *nicNode) awaitLog(texts ...string) {
	n.t.Helper()
	if err := n.Kubelet.Await(n.ctx, func() bool { return n.logged(texts...) > 0 }); err != nil {
		n.t.Fatalf("wait for a log line with %q: %v", texts, err)
	}
}

// admit runs a pod with count devices of a resource.
func (n *nicNode) admit(resource string, count int64) *v1.Pod {
	n.t.Helper()
	pod := kubelet.Pod("pod", resource, count)
	n.must(n.Kubelet.Admit(n.ctx, pod))
	return pod
}

// refused checks that a pod is not admitted, and that the reason has these texts.
func (n *nicNode) refused(resource string, count int64, texts ...string) {
	n.t.Helper()
	err := n.Kubelet.Admit(n.ctx, kubelet.Pod("refused", resource, count))
	if err == nil {
		n.t.Errorf("%d of %s were handed out; allocatable are %v", count, resource, n.Kubelet.Allocatable(resource))
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			n.t.Errorf("%d of %s were refused with %q, not with %s", count, resource, err, text)
		}
	}
}

func (n *nicNode) held(pod *v1.Pod, resource string) []string {
	return n.Kubelet.Allocated(pod, "c", resource)
}

// holds checks what a pod's container has.
func (n *nicNode) holds(pod *v1.Pod, resource string, want ...string) {
	n.t.Helper()
	if got := n.held(pod, resource); !slices.Equal(got, want) {
		n.t.Errorf("the pod has %v of %s, want %v", got, resource, want)
	}
}

// container is what the runtime gets of a pod's first container.
func (n *nicNode) container(pod *v1.Pod) kubelet.Container {
	n.t.Helper()
	c, err := n.Kubelet.StartContainer(n.ctx, pod, 0)
	n.must(err)
	return c
}

// health is what the status of a pod says of a device.
func (n *nicNode) health(pod *v1.Pod, resource, id string) v1.ResourceHealthStatus {
	return n.Kubelet.Health(pod, "c", resource)[id]
}

// infoFile is the path of a device's device-info file.
func (n *nicNode) infoFile(resource, id string) string {
	return filepath.Join(n.info, strings.ReplaceAll(resource, "/", "-")+"-"+id+"-device.json")
}
