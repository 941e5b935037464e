package holders_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/holders"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/nodeview"
	"kata-device-plugin/internal/podresources"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func view(t *testing.T, text string, complete ...string) *check.View {
	t.Helper()
	set, err := manifest.Load(nil, manifest.Options{
		Texts: []manifest.Source{{Name: "in.yaml", Data: []byte(text)}}, Complete: complete,
	})
	must(t, err)
	return check.Look(set, check.Options{})
}

// written holds what is written of a list against the files of a name.
func written(t *testing.T, name string, l *holders.List) {
	t.Helper()
	for ext, write := range map[string]func(*bytes.Buffer) error{
		".txt":  func(b *bytes.Buffer) error { return holders.Table(b, l) },
		".json": func(b *bytes.Buffer) error { return holders.JSON(b, l) },
	} {
		var got bytes.Buffer
		must(t, write(&got))
		golden.Assert(t, got.String(), name+ext)
	}
}

// node is one of which only kubelet has told something.
func node(name string, k nodeview.Kubelet) holders.Node {
	return holders.Node{Name: name, State: nodeview.Join(nodeview.Sources{Kubelet: k})}
}

// TestKubelet: each device with who has it, and those that nobody has.
func TestKubelet(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	pods := []podresources.Pod{
		{Namespace: "team", Name: "train", Containers: []podresources.Container{
			{Name: "c", Devices: []podresources.Device{{Resource: gpu, ID: "0000:41:00.0"}, {Resource: "rdma/shared", ID: "3"}}},
			{Name: "idle"},
		}},
		{Namespace: "team", Name: "claims", Containers: []podresources.Container{{Name: "c", Claims: []podresources.Claim{
			{Namespace: "team", Name: "ours", Devices: []podresources.ClaimDevice{
				{Driver: "vfio.katacontainers.io", Pool: "a", Device: "gpu-0000-61-00-0"},
			}},
			{Namespace: "team", Name: "mine", Devices: []podresources.ClaimDevice{
				{Driver: "gpu.example", Pool: "a", Device: "one"}, {Driver: "gpu.example", Pool: "a", Device: "two"},
			}},
		}}}},
	}
	names := func(driver, pool, device string) string {
		return map[string]string{"gpu.example/a/one": "0000:51:00.0"}[driver+"/"+pool+"/"+device]
	}
	all := []podresources.Device{{Resource: gpu, ID: "0000:41:00.0"}, {Resource: gpu, ID: "0000:42:00.0"}, {Resource: "rdma/shared", ID: "3"}}
	written(t, "kubelet", holders.FromNodes(names, node("a", nodeview.Kubelet{Pods: pods, Allocatable: all}),
		node("b", nodeview.Kubelet{AllocatableErr: errors.New("kubelet was not asked")}),
		node("c", nodeview.Kubelet{PodsErr: errors.New("kubelet was not asked"), Allocatable: all})))
}

// TestObjects: claims' devices have names, plugins' devices are numbers.
func TestObjects(t *testing.T) {
	text, err := os.ReadFile("testdata/cluster.yaml")
	must(t, err)
	written(t, "cluster", holders.FromObjects(view(t, string(text), "nodes", "pods", "resourceclaims", "resourceslices")))
	// Without all pods and claims nobody can say what is left.
	written(t, "open", holders.FromObjects(view(t, string(text))))
}

// TestRequests: a container has what the claim has for its request, and nothing else of the claim.
func TestRequests(t *testing.T) {
	text, err := os.ReadFile("testdata/requests.yaml")
	must(t, err)
	written(t, "requests", holders.FromObjects(view(t, string(text), "nodes", "pods", "resourceclaims", "resourceslices")))
}

// TestBoth: a kubelet that was asked knows its node best, but for the devices of claims that no pod has
// and for pods that have ended; of nodes that were not asked the objects tell.
func TestBoth(t *testing.T) {
	text, err := os.ReadFile("testdata/cluster.yaml")
	must(t, err)
	v := view(t, string(text)+"---\n{apiVersion: v1, kind: Node, metadata: {name: b}, status: {capacity: {x.io/y: 2}, allocatable: {x.io/y: 2}}}\n",
		"nodes", "pods", "resourceclaims", "resourceslices")
	const gpu = "nvidia.com/gpu"
	pods := []podresources.Pod{
		{Namespace: "team", Name: "train", Containers: []podresources.Container{{Name: "c", Devices: []podresources.Device{{Resource: gpu, ID: "1"}}}}},
		{Namespace: "team", Name: "over", Containers: []podresources.Container{{Name: "c",
			Devices: []podresources.Device{{Resource: gpu, ID: "1"}, {Resource: gpu, ID: "2"}}}}},
		{Namespace: "team", Name: "claims", Containers: []podresources.Container{{Name: "c", Claims: []podresources.Claim{
			{Namespace: "team", Name: "mine", Devices: []podresources.ClaimDevice{{Driver: "gpu.example", Pool: "a", Device: "one"}}},
		}}}},
	}
	all := []podresources.Device{{Resource: gpu, ID: "1"}, {Resource: gpu, ID: "2"}, {Resource: gpu, ID: "3"}}
	written(t, "both", holders.FromBoth(v, node("a", nodeview.Kubelet{Pods: pods, Allocatable: all})))
}

// TestSum: of each resource of each node the rows have as many as are allocatable.
func TestSum(t *testing.T) {
	text, err := os.ReadFile("testdata/cluster.yaml")
	must(t, err)
	v := view(t, string(text), "nodes", "pods", "resourceclaims", "resourceslices")
	sums := map[[2]string]int64{}
	for _, r := range holders.FromObjects(v).Rows {
		sums[[2]string{r.Node, r.Resource}] += r.Count
	}
	for _, n := range v.Nodes() {
		for name, count := range n.Allocatable {
			if got := sums[[2]string{n.Name, name}]; got != count {
				t.Errorf("the rows of %s on node %s are %d devices, and %d are allocatable", name, n.Name, got, count)
			}
		}
	}
}

// TestTerminal: what was read does not steer the terminal.
func TestTerminal(t *testing.T) {
	var got bytes.Buffer
	l := holders.FromNodes(func(string, string, string) string { return "" }, node("a\x1b[31m", nodeview.Kubelet{
		Allocatable: []podresources.Device{{Resource: "x/y", ID: "\u009b31m"}}}))
	must(t, holders.Table(&got, l))
	if strings.ContainsAny(got.String(), "\x1b\u009b") {
		t.Errorf("it prints %q", got.String())
	}
}
