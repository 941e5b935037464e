package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"kata-device-plugin/internal/explain"
)

// BenchmarkExplain: one pod that waits in a cluster of a thousand nodes, ten thousand pods and five
// thousand claims. What is measured is the explanation, without loading.
func BenchmarkExplain(b *testing.B) {
	var text strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Node\nmetadata: {name: n%d, uid: u}\nstatus: {capacity: {x/gpu: 8}, allocatable: {x/gpu: 8}}\n", n)
		fmt.Fprintf(&text, "---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s%d, uid: u}\nspec:\n  driver: d\n  nodeName: n%[1]d\n"+
			"  pool: {name: n%[1]d, generation: 1}\n  devices: [{name: a}, {name: b}, {name: c}, {name: e}, {name: f}]\n", n)
		for i, device := range []string{"a", "b", "c", "e", "f"} {
			fmt.Fprintf(&text, "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c%d-%d, namespace: d, uid: u}\nspec: {}\n"+
				"status: {allocation: {devices: {results: [{driver: d, pool: n%[1]d, device: %[3]s}]}}}\n", n, i, device)
		}
		for i := range 10 {
			fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%d-%d, namespace: d, uid: u}\nspec: {nodeName: n%[1]d, containers: "+
				"[{name: c, image: x, resources: {limits: {x/gpu: 1}}}]}\nstatus: {phase: Running}\n", n, i)
		}
	}
	text.WriteString("---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: k}\nspec: {selectors: [{cel: {expression: device.driver == 'd'}}]}\n" +
		"---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: mine, namespace: d, uid: u}\n" +
		"spec: {devices: {requests: [{name: r, exactly: {deviceClassName: k}}]}}\n" +
		"---\napiVersion: v1\nkind: Pod\nmetadata: {name: waits, namespace: d, uid: u}\nspec: {resourceClaims: [{name: x, resourceClaimName: mine}], " +
		"containers: [{name: c, image: x, resources: {limits: {x/gpu: 1}, claims: [{name: x}]}}]}\nstatus: {phase: Pending}\n")
	in := explain.Input{View: load(b, text.String(), "nodes", "pods", "configmaps", "resourceclaims", "resourceslices", "deviceclasses")}
	for b.Loop() {
		r, err := explain.Pod(in, "d", "waits")
		must(b, err)
		for _, c := range r.Chains {
			if s := c.Break(); s == nil || s.Name != "free" {
				b.Fatalf("%s stops at %+v", c.About, s)
			}
		}
	}
}
