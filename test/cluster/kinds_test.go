//go:build node

package cluster

import (
	"context"
	"os"
	"strings"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"kata-device-plugin/test/peer"
)

// kindsOfNodes: with the runtime class and the taint of docs/kata-device-plugin.md a pod without a VM does not come to
// a node of VFIO, though it asks for the same resource. A pod of the class does, and the plugin stays.
func kindsOfNodes(c *cluster) {
	w := c.join("kinds", hgxH100)
	plugin := w.ready()
	class := c.printedClass()
	class.Handler = "runc" // there is no Kata
	classes := c.Client().NodeV1().RuntimeClasses()
	_, err := classes.Create(c.ctx, class, metav1.CreateOptions{})
	c.must(err)
	c.t.Cleanup(func() {
		if err := classes.Delete(context.Background(), class.Name, metav1.DeleteOptions{}); err != nil {
			c.t.Errorf("remove the runtime class: %v", err)
		}
	})
	w.label("example.com/devices", `"vfio"`)
	w.patch(`{"spec":{"taints":[{"key":"example.com/devices","value":"vfio","effect":"NoSchedule"}]}}`)

	c.pod(peer.NewPod("container", gpu, 1))
	c.pending("container", "untolerated taint")
	vm := peer.NewPod("vm", gpu, 1)
	vm.Spec.RuntimeClassName = &class.Name
	c.pod(vm)
	w.plugged("vm", 1)
	w.unmoved(daemonSet, plugin)
}

// printedClass is the runtime class of the document.
func (c *cluster) printedClass() *nodev1.RuntimeClass {
	c.t.Helper()
	text, err := os.ReadFile("../../docs/kata-device-plugin.md")
	c.must(err)
	_, rest, _ := strings.Cut(string(text), "```yaml\napiVersion: node.k8s.io/v1\n")
	block, _, _ := strings.Cut(rest, "```")
	var class nodev1.RuntimeClass
	c.must(yaml.UnmarshalStrict([]byte(block), &class))
	return &class
}
