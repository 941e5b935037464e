//go:build !kubernetes134

package exporter

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	v1 "k8s.io/api/core/v1"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/kubelet"
)

// nicPools offers VFs whole, and each of four HCAs three times.
const nicPools = `{"resourceList": [{"resourceName": "dpdk", "selectors": {"drivers": ["vfio-pci"]}}],
  "configList": [{"resourceName": "hca", "rdmaHcaMax": 12, "selectors": {"vendors": ["15b3"], "drivers": ["mlx5_core"]}}]}`

const (
	hca  = "rdma/hca"
	dpdk = "intel.com/dpdk"
)

// newNICNode is a node with nic-device-plugin, kubelet and the exporter, all of which know the node's links.
func newNICNode(t *testing.T) *node {
	t.Helper()
	n := newNode(t, "sriov-cpu")
	n.Binary = nicPlugin
	config, netlink := filepath.Join(n.Dir, "etc/nic-device-plugin/config.json"), filepath.Join(n.Dir, "netlink")
	for _, dir := range []string{
		filepath.Dir(config), netlink, filepath.Join(n.Dir, "var/run/k8s.cni.cncf.io/devinfo/dp"), n.Node.Node.Roots("nic-device-plugin").Run,
	} {
		n.must(os.MkdirAll(dir, 0o755))
	}
	// The exporter may read where its configuration is, and finds the links there.
	for _, file := range []string{config, filepath.Join(netlink, "config.json")} {
		n.must(os.WriteFile(file, []byte(nicPools), 0o600))
	}
	n.must(n.WriteLinks(filepath.Join(netlink, "links.json")))
	n.startKubelet()
	var err error
	n.Plugin, err = harness.StartPlugin(n.ctx, nicPlugin, n.Dir, io.Discard)
	n.must(err)
	n.must(n.Kubelet.Await(n.ctx, func() bool {
		return len(n.Kubelet.Allocatable(hca)) > 0 && len(n.Kubelet.Allocatable(dpdk)) > 0
	}))
	return n
}

// gives admits a pod with some of a resource.
func (n *node) gives(name, resource string, count int64) *v1.Pod {
	n.t.Helper()
	pod := kubelet.Pod(name, resource, count)
	n.must(n.Kubelet.Admit(n.ctx, pod))
	return pod
}

// shares says what is wrong with what is told of a resource, of which pods have all that kubelet has given
// them.
func (n *node) shares(resource string, units int, pods ...*v1.Pod) func(metrics) string {
	return func(m metrics) string {
		taken, offered := map[string]bool{}, n.Kubelet.Allocatable(resource)
		for _, pod := range pods {
			for _, id := range n.Kubelet.Allocated(pod, "c", resource) {
				taken[id] = true
				function, _, _ := strings.Cut(id, "::")
				if !slices.ContainsFunc(m.family("device_allocation_info"), func(series string) bool {
					return strings.Contains(series, `device="`+id+`"`) && strings.Contains(series, `pci_address="`+function+`"`) &&
						strings.Contains(series, `pod="`+pod.Name+`"`) && strings.Contains(series, `resource="`+resource+`"`)
				}) {
					return "nobody is told to have " + id
				}
			}
		}
		if told := len(m.of(resource, "device_allocation_info")); told != len(taken) {
			return fmt.Sprintf("%d are told to be held, want %d", told, len(taken))
		}
		free := slices.DeleteFunc(slices.Clone(offered), func(id string) bool { return taken[id] })
		for series, want := range map[string]int{
			`resource_allocatable{resource="%s"}`: len(offered), `resource_allocated{resource="%s"}`: len(taken), `resource_free{resource="%s"}`: len(free),
			`devices{resource="%s",state="healthy"}`: units, `devices{resource="%s",state="unhealthy"}`: 0,
			`kubelet_registered{resource="%s"}`: 1, `kubelet_plugin_sockets{resource="%s",state="listening"}`: 1,
			`cdi_devices{kind="%s",state="resolvable"}`: units, `cdi_devices{kind="%s",state="missing"}`: 0,
		} {
			if series = fmt.Sprintf(series, resource); m[series] != float64(want) {
				return fmt.Sprintf("%s is %v, want %d", series, m[series], want)
			}
		}
		return ""
	}
}

// family are the series of a metric, and of those of a resource.
func (m metrics) family(name string) (all []string) {
	for series := range m {
		if strings.HasPrefix(series, name+"{") {
			all = append(all, series)
		}
	}
	return all
}

func (m metrics) of(resource, name string) []string {
	return slices.DeleteFunc(m.family(name), func(series string) bool { return !strings.Contains(series, `resource="`+resource+`"`) })
}

// TestShares: one device that is offered several times, and given to several pods, is told as each of its
// shares and as one function; also when a pod goes, and another gets the same share.
func TestShares(t *testing.T) {
	n := newNICNode(t)
	all := len(n.Kubelet.Allocatable(hca))
	if all != 12 {
		t.Fatalf("kubelet has %v", n.Kubelet.Allocatable(hca))
	}
	first, second := n.gives("first", hca, 3), n.gives("second", hca, 3)
	whole := n.gives("whole", dpdk, 2)
	n.startExporter("--nic-config-file=" + filepath.Join(n.Dir, "netlink", "config.json"))
	n.await("two pods have shares", n.shares(hca, all, first, second))
	m := n.await("a pod has VFs", n.shares(dpdk, len(n.Kubelet.Allocatable(dpdk)), whole))
	if told := len(m.of(hca, "device_healthy")); told != 4 {
		t.Errorf("%d HCAs are healthy, want 4", told)
	}
	n.Kubelet.Remove(first)
	n.await("one pod has gone", n.shares(hca, all, second))
	rest := n.gives("rest", hca, int64(all-3))
	n.await("another pod has all the others", n.shares(hca, all, second, rest))
	if m := n.scrape(); m[`resource_free{resource="rdma/hca"}`] != 0 {
		t.Errorf("%v are free", m[`resource_free{resource="rdma/hca"}`])
	}
	n.Kubelet.Remove(second)
	n.Kubelet.Remove(rest)
	n.await("nobody has any", n.shares(hca, all))
}

// TestNICPage: the page of a node with NICs whose links are known.
func TestNICPage(t *testing.T) {
	n := newNICNode(t)
	n.gives("upf", dpdk, 2)
	n.gives("smf", hca, 3)
	n.startExporter("--nic-config-file=" + filepath.Join(n.Dir, "netlink", "config.json"))
	n.await("the pods are known", func(m metrics) string {
		if told := len(m.family("device_allocation_info")); told != 5 {
			return fmt.Sprintf("%d devices are held", told)
		}
		return ""
	})
	b := newBrowser(t)
	b.do("open", chromedp.EmulateViewport(1440, 900), chromedp.Navigate(n.url), chromedp.WaitVisible(chromedp.CSS("svg")))
	b.picture("nics-wide")
	text := value[string](b, `document.querySelector("main").innerText`)
	for _, want := range []string{hca, dpdk, "default/upf/c", "default/smf/c", "not declared", "HST043"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	for _, bad := range []string{"Not known now", "could not be read", "network namespace"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page says %q of a node of which everything is known:\n%s", bad, text)
		}
	}
	b.everywhere("nics")
	b.clean(n.url)
}
