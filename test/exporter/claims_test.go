//go:build !kubernetes134

package exporter

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/plane"
)

// twoGPUs is a template for two GPUs in one claim.
const twoGPUs = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two-gpus, namespace: default}
spec:
  spec:
    devices:
      requests:
      - {name: gpus, exactly: {deviceClassName: gpu.vfio.katacontainers.io, count: 2}}
`

// claimed is a node of a cluster with the DRA driver and the exporter, and where the driver's metrics are.
func claimed(t *testing.T) (n *node, p *plane.Plane, metrics string) {
	t.Helper()
	driver, err := harness.BuildDRADriver(t.Context(), t.TempDir())
	must(t, err)
	manifests, err := harness.Manifests(t.Context(), "kata-dra-driver")
	must(t, err)
	p = plane.Start(t, plane.Options{})
	for object := range strings.SplitSeq(manifests, "\n---\n") {
		if !strings.Contains(object, "\nkind: DaemonSet\n") && !strings.Contains(object, "\nkind: NetworkPolicy\n") {
			p.Create(t, object)
		}
	}
	p.Create(t, twoGPUs)
	dir, err := sim.TempDir()
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	shape, err := sim.PlatformByName("hgx-h100")
	must(t, err)
	hw, err := sim.New(dir, shape)
	must(t, err)
	roots, boot := hw.Roots("kata-dra-driver"), filepath.Join(dir, "proc/sys/kernel/random")
	must(t, os.MkdirAll(roots.Run, 0o755), os.MkdirAll(boot, 0o755))
	must(t, os.WriteFile(filepath.Join(boot, "boot_id"), []byte("boot-1\n"), 0o444))
	on := p.Node(t, "node-1", plane.NodeOptions{Root: filepath.Join(dir, "var/lib/kubelet"), CDI: roots.CDI})
	on.Run()
	on.PluginDir(t, "vfio.katacontainers.io")
	config := p.Kubeconfig(t, p.Agent(t, "kube-system", "kata-dra-driver", "node-1"))
	d, err := harness.StartPlugin(t.Context(), driver, dir, io.Discard,
		"--node-name=node-1", "--pod-uid=p1", "--kubeconfig="+config, "--poll-interval=200ms", "--web.listen-address=127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { must(t, d.Kill()) })
	port, err := d.Port(t.Context())
	must(t, err)
	n = &node{Node: &harness.Node{Node: hw, Dir: dir}, t: t, ctx: t.Context(), log: &log{listening: make(chan string, 1)}}
	t.Cleanup(func() {
		if n.exporter != nil {
			must(t, n.exporter.Kill())
		}
	})
	n.startExporter()
	return n, p, fmt.Sprintf("http://127.0.0.1:%d/", port)
}

// TestClaims: the devices of a claim are told with the claim, from when the pod has them until it has
// gone; and the node is not taken for one of a device plugin.
func TestClaims(t *testing.T) {
	n, p, _ := claimed(t)
	pod := p.Pod(t, plane.ClaimPod("train", "two-gpus"))
	p.AwaitPhase(t, pod, v1.PodRunning)
	m := n.await("the pod has two devices", of("train", 2))
	for series := range m {
		if strings.HasPrefix(series, "device_allocation_info") &&
			!(strings.Contains(series, `source="dra"`) && strings.Contains(series, `request="gpus"`) && strings.Contains(series, `claim="train-claim-`) &&
				strings.Contains(series, `pool="node-1"`) && strings.Contains(series, `resource=""`)) {
			t.Errorf("%s", series)
		}
		if strings.HasPrefix(series, "kubelet_registered") {
			t.Errorf("a resource of the driver: %s", series)
		}
	}
	n.await("the claim is prepared", is(`claims{state="Prepared"}`, 1))
	n.await("its CDI names resolve", is(`cdi_devices{kind="vfio.katacontainers.io/claim",state="resolvable"}`, 2))
	n.await("the driver has the lock", is(`resource_owner_info{owner="dra_driver",resource="nvidia.com/gpu"}`, 1))
	p.Delete(t, pod)
	p.AwaitGone(t, pod)
	n.await("nobody has a device", of("train", 0))
	n.await("there is no claim", is(`claims{state="Prepared"}`, 0))
	n.await("nothing is left", is(`allocations_not_released{source="claim_records"}`, 0))
}

// of waits for a pod to have so many devices, and nobody else any.
func of(pod string, want int) func(metrics) string {
	return func(m metrics) string {
		all, mine := 0, 0
		for series := range m {
			if strings.HasPrefix(series, "device_allocation_info") {
				all++
				if strings.Contains(series, `pod="`+pod+`"`) {
					mine++
				}
			}
		}
		if all != want || mine != want {
			return fmt.Sprintf("%d devices are held, %d of them by %s, want %d", all, mine, pod, want)
		}
		return ""
	}
}
