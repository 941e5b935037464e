//go:build node

package live

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/internal/pci"
	"kata-device-plugin/test/peer"
)

// cluster is a control plane with one node that has GPUs, NVSwitches, and NICs that are bound to VFIO.
type cluster struct {
	*peer.ControlPlane
	t    *testing.T
	node *peer.Node
	helm helm
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// values are those of a machine that has no registry to ask.
func values(tag, more string) string {
	return "kataDevicePlugin: {image: {pullPolicy: Never, tag: " + tag + "}}\n" + more
}

// TestChart runs its parts on one cluster, which takes long to start.
func TestChart(t *testing.T) {
	c := start(t)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *cluster)
	}{{"life", life}, {"take over", takeOver}, {"afternoon", afternoon}} {
		t.Run(part.name, func(t *testing.T) {
			part.run(t, &cluster{ControlPlane: c.ControlPlane, t: t, node: c.node, helm: c.helm})
		})
	}
}

// life installs the chart, upgrades it, rolls it back and removes it, and looks each time at what runs,
// whose the objects are, and what is left.
func life(t *testing.T, c *cluster) {
	before := c.objects()

	t.Log("install")
	c.must(c.helm.install(t.Context(), values("dev", ""), false))
	c.owned("DaemonSet/kata-device-plugin", "NetworkPolicy/kata-device-plugin")
	c.offers("dev")

	t.Log("what cannot be is refused, and changes nothing")
	revision := c.revision()
	for _, more := range []string{
		"draDriver: {enabled: true, nodeSelector: {node-restriction.kubernetes.io/passthrough-mode: null}}",
		"exporter: {enabled: true, podMonitor: {enabled: true}}", // there is no operator, so no such kind
		"exporter: {enable: true}",
	} {
		was := c.objects()
		if err := c.helm.upgrade(t.Context(), values("dev", more)); err == nil {
			t.Errorf("an upgrade with {%s} is done", more)
		}
		if now := c.objects(); !slices.Equal(now, was) || c.revision() != revision {
			t.Errorf("a refused upgrade with {%s} has changed %v to %v", more, was, now)
		}
	}

	t.Log("upgrade")
	c.must(c.helm.upgrade(t.Context(), values("next", "draDriver: {enabled: true}")))
	c.offers("next")
	driver := []string{
		"ServiceAccount/kata-dra-driver", "DaemonSet/kata-dra-driver", "NetworkPolicy/kata-dra-driver", "ClusterRole/kata-dra-driver",
		"ClusterRoleBinding/kata-dra-driver", "DeviceClass/gpu.vfio.katacontainers.io",
		"ValidatingAdmissionPolicy/slices.vfio.katacontainers.io", "ValidatingAdmissionPolicyBinding/slices.vfio.katacontainers.io",
	}
	c.owned(append(driver, "DaemonSet/kata-device-plugin")...)

	t.Log("roll back")
	c.must(c.helm.rollback(1))
	c.offers("dev")
	for _, id := range driver {
		if slices.Contains(c.objects(), id) {
			t.Errorf("%s is still there", id)
		}
	}

	t.Log("remove")
	c.must(c.helm.uninstall())
	c.awaitObjects(before)
	c.cleaned()
}

// takeOver: what was applied with kustomize becomes a release, and no pod is restarted for that.
func takeOver(t *testing.T, c *cluster) {
	before := c.objects()
	c.must(c.helm.install(t.Context(), values("dev", ""), false))
	pod := c.offers("dev")
	// As it is after kubectl apply -k: the same objects, of no release.
	c.disown()
	if err := c.helm.install(t.Context(), values("dev", ""), false); err == nil || !strings.Contains(err.Error(), "ownership") {
		t.Errorf("objects of somebody else are overwritten, or it is not said: %v", err)
	}
	c.must(c.helm.install(t.Context(), values("dev", ""), true))
	c.owned("DaemonSet/kata-device-plugin", "NetworkPolicy/kata-device-plugin")
	if now := c.offers("dev"); now.UID != pod.UID {
		t.Errorf("the pod %s has become %s", pod.Name, now.Name)
	}
	c.must(c.helm.uninstall())
	c.awaitObjects(before)
	c.cleaned()
}

// nics are those that the host has bound to VFIO.
func nics() []string { return []string{"0000:54:00.0", "0000:65:00.0", "0000:76:00.0"} }

// start starts a cluster, with a node on which each image has two tags.
func start(t *testing.T) *cluster {
	t.Helper()
	plane := peer.StartControlPlane(t, programs)
	c := &cluster{ControlPlane: plane, t: t, helm: helm{plane.Config()}}
	c.node = peer.StartNode(t, peer.Options{Programs: programs, Name: "gpu", Platform: "hgx-h100", Join: plane, Stopped: true})
	for _, program := range agents() {
		c.must(c.node.Containerd().Import(t.Context(), archive(program)))
		image := "docker.io/library/" + program
		_, err := c.node.Containerd().Ctr(t.Context(), "image", "tag", image+":dev", image+":next")
		c.must(err)
	}
	for _, nic := range nics() {
		a, err := pci.ParseAddress(nic)
		c.must(err)
		c.must(c.node.Machine.Unbind(a))
		c.must(c.node.Machine.Bind(a, "vfio-pci"))
	}
	c.equip()
	c.must(c.node.Kubelet().Start(t.Context()))
	return c
}

func (c *cluster) await(what string, look func(context.Context) error) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	c.must(peer.Await(ctx, what, look))
}

// offers waits until the plugin's pod of just this image is ready and the node offers all its devices.
func (c *cluster) offers(tag string) *v1.Pod {
	c.t.Helper()
	pod := c.ready("kata-device-plugin", tag)
	c.allocatable(map[string]int{gpu: len(c.node.Machine.GPUs())})
	return pod
}

// ready waits until a program has one pod, of just this image if a tag is named, which is ready.
func (c *cluster) ready(program, tag string) (ready *v1.Pod) {
	c.t.Helper()
	c.await("the pod of "+program+" "+tag, func(ctx context.Context) error {
		list, err := c.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + program})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("there are %d pods", len(list.Items))
		}
		ready = &list.Items[0]
		if !strings.HasSuffix(ready.Spec.Containers[0].Image, ":"+tag) && tag != "" || !slices.ContainsFunc(ready.Status.Conditions, func(c v1.PodCondition) bool {
			return c.Type == v1.PodReady && c.Status == v1.ConditionTrue
		}) {
			return fmt.Errorf("%s of %s is %+v", ready.Name, ready.Spec.Containers[0].Image, ready.Status)
		}
		return nil
	})
	return ready
}

// revision is the number of the release's last revision.
func (c *cluster) revision() int {
	c.t.Helper()
	releases := storage.Init(driver.NewSecrets(c.Client().CoreV1().Secrets(namespace)))
	list, err := releases.History(name)
	c.must(err)
	return len(list)
}

// cleaned does on the node what docs/install.md says, and complains if the programs have left anything
// there after that. Before, the CDI specs are there, which a pod that is being created may need.
func (c *cluster) cleaned() {
	c.t.Helper()
	text, err := os.ReadFile("../../../docs/install.md")
	c.must(err)
	_, remove, _ := strings.Cut(string(text), "\n## Remove\n")
	commands := regexp.MustCompile(`(?m)^    ((?:rm|find) .*)$`).FindAllStringSubmatch(remove, -1)
	if len(commands) < 4 {
		c.t.Fatalf("docs/install.md has %d commands to clean a node, want one for each program at least", len(commands))
	}
	if specs := c.left(); !slices.Contains(specs, "/run/cdi/kata.nvidia.com-gpu.json") {
		c.t.Errorf("the CDI spec of GPUs is not among what stays: %v", specs)
	}
	for _, command := range commands {
		_, err := c.node.Run(c.t.Context(), "/bin/bash", "-c", strings.ReplaceAll(command[1], "PREFIX", "example.com"))
		c.must(err)
	}
	if left := c.left(); len(left) > 0 {
		c.t.Errorf("after all commands of docs/install.md there is on the node %v", left)
	}
}

// left are the files of the project on the node, wherever its programs may write on a host. /var/run is a
// link in it, which would lead to the directory of the machine that the test runs on.
func (c *cluster) left() (files []string) {
	c.t.Helper()
	kubelets := []string{"kubelet.sock", "kubelet_internal_checkpoint", "DEPRECATION"}
	for _, dir := range []string{
		"/run/cdi", "/run/k8s.cni.cncf.io", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins_registry",
	} {
		err := filepath.WalkDir(c.node.Path(dir), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && !d.IsDir() && !slices.Contains(kubelets, d.Name()) {
				files = append(files, strings.TrimPrefix(path, c.node.Path("/")))
			}
			return err
		})
		c.must(err)
	}
	slices.Sort(files)
	return files
}
