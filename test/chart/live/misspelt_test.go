//go:build node

package live

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// misspelt breaks the name of the resource in each of the three places where it stands, one at a time:
// kubectl-device says which it is, and nothing any more when it is mended.
func (c *cluster) misspelt() {
	for _, place := range []struct {
		what           string
		pool           string // in the plugin's ConfigMap
		network, pod   string
		check, explain []string
	}{
		{"the pod", fabric, fabric, "example.com/fbaric",
			[]string{`error[NAM001]: pod default/train requests "example.com/fbaric"`, `did you mean "example.com/fabric"`},
			[]string{`stops at "spelled the same": pod default/train requests "example.com/fbaric"`, `did you mean "example.com/fabric"`}},
		{"the network", fabric, "example.com/fabirc", fabric,
			[]string{`error[NAM002]: network default/fabric names "example.com/fabirc"`, `did you mean "example.com/fabric"`},
			[]string{`stops at "spelled the same": network default/fabric names "example.com/fabirc"`, `did you mean "example.com/fabric"`}},
		{"the ConfigMap", "example.com/fabrci", fabric, fabric,
			[]string{`error[NAM001]: pod default/train requests "example.com/fabric", which was advertised once, and nothing advertises it now`,
				`configmap kube-system/nic-device-plugin: note: advertised here as "example.com/fabrci"`, `did you mean "example.com/fabrci"`},
			[]string{`stops at "spelled the same": pod default/train requests "example.com/fabric"`, `did you mean "example.com/fabrci"`}},
	} {
		c.t.Log("misspelt in", place.what)
		c.must(c.helm.upgrade(c.t.Context(), all("dev", place.pool)))
		c.allocatable(map[string]int{place.pool: len(nics())})
		c.network(place.network)
		c.create(trainPod(place.pod))
		c.says(place.what, c.device("check", "--live", "-A"), place.check)
		c.says(place.what, c.device("explain", "pod", "default/train", "--live", "-A"), place.explain)

		c.remove("train")
		c.must(c.helm.upgrade(c.t.Context(), all("dev", fabric)))
		c.allocatable(map[string]int{fabric: len(nics())})
		c.network(fabric)
	}
	c.create(trainPod(fabric))
	c.holder("train")
	c.clean("with all names mended")
	c.remove("train")
}

// says complains unless a text has all these words, wherever its lines end.
func (c *cluster) says(what, text string, want []string) {
	c.t.Helper()
	words := strings.Join(strings.Fields(text), " ")
	for _, w := range want {
		if !strings.Contains(words, w) {
			c.t.Errorf("a name is wrong in %s, and this does not say %q:\n%s", what, w, text)
		}
	}
}

// clean complains if check finds an error in the cluster.
func (c *cluster) clean(when string) {
	c.t.Helper()
	text := c.device("check", "--live", "-A")
	if strings.Contains(text, ": error[") || !strings.Contains(text, "checks skipped for lack of input") {
		c.t.Errorf("%s kubectl-device finds\n%s", when, text)
	}
}

// network makes the network of the NICs, with the name of a resource, or changes it.
func (c *cluster) network(resource string) {
	c.t.Helper()
	o := object("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition", "fabric")
	o.SetNamespace("default")
	o.SetAnnotations(map[string]string{"k8s.v1.cni.cncf.io/resourceName": resource})
	o.Object["spec"] = map[string]any{"config": `{"cniVersion": "1.0.0", "name": "fabric", "type": "sriov"}`}
	_, err := c.dynamic().Resource(networkResource()).Namespace("default").
		Apply(c.t.Context(), "fabric", o, metav1.ApplyOptions{FieldManager: "test", Force: true})
	c.must(err)
}
