package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/manifest"
)

// cluster writes the dump of a large cluster, as kubectl get -o yaml prints it: with nodes,
// claims, and pods of which one in a hundred waits.
func cluster(pods, nodes, claims int) string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nitems:\n")
	item := func(text string) {
		b.WriteString("- " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n")
	}
	item(strings.TrimSuffix(sriovConfig, "\n"))
	for i := range nodes {
		item(fmt.Sprintf(`apiVersion: v1
kind: Node
metadata:
  name: n%d
  uid: n%d
  labels: {pool: p%d}
status:
  allocatable: {cpu: "64", intel.com/vf_a: "16", memory: 512Gi}
  capacity: {cpu: "64", intel.com/vf_a: "16", memory: 512Gi}
`, i, i, i%10))
	}
	for i := range 20 {
		item(network(fmt.Sprintf("net%d", i), "intel.com/vf_a", "sriov"))
	}
	for i := range pods {
		place, phase := fmt.Sprintf("  nodeName: n%d\n", i%nodes), "Running"
		if i%100 == 0 {
			place, phase = "", "Pending"
		}
		item(fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata:
  name: p%d
  namespace: ns%d
  uid: u%d
  annotations:
    k8s.v1.cni.cncf.io/networks: default/net%d
  labels: {app: a%d}
  managedFields:
  - apiVersion: v1
    fieldsType: FieldsV1
    fieldsV1:
      f:metadata:
        f:annotations:
          .: {}
          f:k8s.v1.cni.cncf.io/networks: {}
      f:spec:
        f:containers:
          k:{"name":"c"}:
            .: {}
            f:image: {}
            f:resources: {}
    manager: kube-controller-manager
    operation: Update
spec:
  containers:
  - name: c
    image: registry.example/app:v1
    env:
    - {name: A, value: "1"}
    resources:
      limits: {cpu: "1", intel.com/vf_a: "1"}
      requests: {cpu: "1", intel.com/vf_a: "1"}
%sstatus:
  phase: %s
  podIP: 10.0.0.1
`, i, i%50, i, i%20, i%500, place, phase))
	}
	for i := range claims {
		item(fmt.Sprintf("apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c%d, namespace: ns%d, uid: c%d}\nspec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}", i, i%50, i))
	}
	b.WriteString("kind: List\nmetadata:\n  resourceVersion: \"\"\n")
	return b.String()
}

// BenchmarkLargeCluster: 10,000 pods, 1,000 nodes and 5,000 claims are a matter of seconds.
func BenchmarkLargeCluster(b *testing.B) {
	file := filepath.Join(b.TempDir(), "cluster.yaml")
	text := cluster(10_000, 1_000, 5_000)
	must(b, os.WriteFile(file, []byte(text), 0o600))
	b.Run("load", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			_, err := manifest.Load([]string{file}, manifest.Options{})
			must(b, err)
		}
	})
	set, err := manifest.Load([]string{file}, manifest.Options{})
	must(b, err)
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if r := check.Run(set, check.Options{}); r.ExitCode(2, false) != exit.OK {
				b.Fatal(found(r)[:3])
			}
		}
	})
}

// TestLinear: four times the pods cost about four times the allocations, not sixteen.
func TestLinear(t *testing.T) {
	cost := func(scale int) float64 {
		set := load(t, cluster(150*scale, 20*scale, 0))
		return testing.AllocsPerRun(1, func() { check.Run(set, check.Options{}) })
	}
	if one, four := cost(1), cost(4); four > 6*one {
		t.Errorf("%.0f allocations, and %.0f for four times the objects", one, four)
	}
}

// BenchmarkCapturedNodes: a thousand captured nodes are a matter of seconds as well.
func BenchmarkCapturedNodes(b *testing.B) {
	var nodes []check.NodeInput
	for i := range 1000 {
		for _, file := range []string{"testdata/TOP007/fail.node", "testdata/CDI006/fail.node"} {
			f, err := os.Open(file)
			must(b, err)
			c, err := capture.Read(f)
			must(b, err)
			must(b, f.Close())
			nodes = append(nodes, check.NodeInput{Name: fmt.Sprintf("n%d", i), File: "in.node", Capture: c})
		}
	}
	set, err := manifest.Load(nil, manifest.Options{})
	must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if r := check.Run(set, check.Options{Nodes: nodes}); len(r.Findings) < 2000 {
			b.Fatalf("found only %d", len(r.Findings))
		}
	}
}
