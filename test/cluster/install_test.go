//go:build node

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// install: the manifests, applied before there was a node, bring one ready plugin to each
// node that joins: to one with hardware, and to one without, where it has nothing to say.
func install(c *cluster) {
	with, without := c.join("install-gpu", "hgx-h100"), c.join("install-cpu", "cpu-only")
	pod := with.ready()
	c.complete(daemonSet, 2)
	c.shipped(daemonSet, base)

	node, err := c.Client().CoreV1().Nodes().Get(c.ctx, without.Name(), metav1.GetOptions{})
	c.must(err)
	for name := range node.Status.Capacity {
		if strings.HasPrefix(string(name), "nvidia.com/") {
			c.t.Errorf("a node without hardware has %s", name)
		}
	}
	if lines := c.logOf(without.pluginReady()); len(lines) != 1 || !strings.Contains(lines[0], `"msg":"ready"`) {
		c.t.Errorf("a plugin without hardware says %q, want one line: ready", lines)
	}
	if text := strings.Join(c.logOf(pod), "\n"); !strings.Contains(text, `"msg":"ready","resource":["`+gpu+` 8/8","`+nvswitch+` 4/4"]`) {
		c.t.Errorf("a plugin with hardware does not say that it is ready with all of it: %s", text)
	}
	with.powerless(daemonSet)
	with.filtered(daemonSet)
	with.agree()
}

// filtered complains unless a program's process has a filter of system calls of its own beside the runtime's.
func (w *worker) filtered(program string) {
	w.t.Helper()
	status, err := w.statusOf(program)
	w.must(err)
	if !strings.Contains(status, "\nSeccomp_filters:\t2\n") {
		w.t.Errorf("the process of %s does not have two filters:\n%s", program, status)
	}
}

// complete waits until the DaemonSet is up to date and ready on so many nodes.
func (c *cluster) complete(daemonSet string, nodes int32) {
	c.t.Helper()
	c.await("the DaemonSet "+daemonSet, func(ctx context.Context) error {
		ds, err := c.Client().AppsV1().DaemonSets(system).Get(ctx, daemonSet, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := ds.Status
		if s.ObservedGeneration != ds.Generation || s.DesiredNumberScheduled != nodes || s.UpdatedNumberScheduled != nodes || s.NumberAvailable != nodes {
			return fmt.Errorf("its status is %+v", s)
		}
		return nil
	})
}

// shipped complains if what runs is not what ships, but for the overlay.
func (c *cluster) shipped(daemonSet, base string) {
	c.t.Helper()
	file, err := os.Open(base)
	c.must(err)
	defer file.Close()
	var want appsv1.DaemonSet
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); want.Kind != "DaemonSet"; {
		want = appsv1.DaemonSet{}
		c.must(decoder.Decode(&want))
	}
	// The API server fills in what the manifest leaves out, in this one as well.
	want.Name = "as-shipped"
	filled, err := c.Client().AppsV1().DaemonSets(system).Create(c.ctx, &want, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	c.must(err)
	got, err := c.Client().AppsV1().DaemonSets(system).Get(c.ctx, daemonSet, metav1.GetOptions{})
	c.must(err)
	pod := &got.Spec.Template.Spec
	container := &pod.Containers[0]
	container.ImagePullPolicy = v1.PullIfNotPresent
	container.VolumeMounts = slices.DeleteFunc(container.VolumeMounts, func(m v1.VolumeMount) bool { return m.Name == "sys" })
	container.Env = slices.DeleteFunc(container.Env, func(e v1.EnvVar) bool { return strings.HasPrefix(e.Name, "KUBERNETES_SERVICE_") })
	pod.Volumes = slices.DeleteFunc(pod.Volumes, func(v v1.Volume) bool { return v.Name == "sys" })
	if !reflect.DeepEqual(*pod, filled.Spec.Template.Spec) {
		c.t.Errorf("the pods are\n%+v, shipped are\n%+v", *pod, filled.Spec.Template.Spec)
	}
}

// logOf is what the plugin has logged, asked for as `kubectl logs` does.
func (c *cluster) logOf(pod *v1.Pod) []string {
	c.t.Helper()
	lines, err := c.logNow(c.ctx, pod)
	c.must(err)
	return lines
}

func (c *cluster) logNow(ctx context.Context, pod *v1.Pod) ([]string, error) {
	text, err := c.Client().CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &v1.PodLogOptions{}).DoRaw(ctx)
	return strings.Split(strings.TrimSpace(string(text)), "\n"), err
}

// powerless complains if a program's process has more rights than its manifest gives it.
func (w *worker) powerless(program string) {
	w.t.Helper()
	status, err := w.statusOf(program)
	w.must(err)
	for _, line := range []string{
		"Uid:\t0\t0\t0\t0", "Gid:\t0\t0\t0\t0", "CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
		"CapBnd:\t0000000000000000", "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
	} {
		if !strings.Contains(status, "\n"+line+"\n") {
			w.t.Errorf("the process of %s does not have %q:\n%s", program, line, status)
		}
	}
}

// statusOf is what the kernel says of the node's only process of a program.
func (w *worker) statusOf(program string) (string, error) {
	found, err := filepath.Glob(w.Path("/proc/[0-9]*/cmdline"))
	if err != nil {
		return "", err
	}
	var status []string
	for _, file := range found {
		command, err := os.ReadFile(file)
		if err != nil || string(command) != "/"+program+"\x00" {
			continue // or it has ended meanwhile
		}
		text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "status"))
		if err != nil {
			return "", err
		}
		status = append(status, string(text))
	}
	if len(status) != 1 {
		return "", fmt.Errorf("look for the process of %s: there are %d", program, len(status))
	}
	return status[0], nil
}

// agree complains unless a device has one name everywhere: to kubelet, to the API server's
// pod, to CDI and to the hardware.
func (w *worker) agree() {
	w.t.Helper()
	w.must(w.AwaitAllocatable(w.ctx, gpu, w.gpus()))
	w.must(w.AwaitAllocatable(w.ctx, nvswitch, w.switches()))
	w.replicas("agree", 1, 8)
	pod := w.running("agree", 1)[0]
	names, _, err := w.Granted(string(pod.UID), gpu)
	w.must(err)
	var want []string
	for _, id := range w.gpus() {
		want = append(want, gpu+"="+id)
		path, _, err := w.DeviceNode(id)
		w.must(err)
		node, err := w.Resolve(gpu + "=" + id)
		w.must(err)
		if node != path {
			w.t.Errorf("%s is %s by CDI, and %s by the kernel", id, node, path)
		}
	}
	if !slices.Equal(names, want) {
		w.t.Errorf("granted are %v, want %v", names, want)
	}
}

// running waits until so many pods of a ReplicaSet run on the node, each with just its own
// devices, and returns them. A device in two pods is an error.
func (w *worker) running(name string, count int) (pods []v1.Pod) {
	w.t.Helper()
	w.await(fmt.Sprintf("%d pods of %s", count, name), func(ctx context.Context) (err error) {
		all, err := w.pods(ctx, name)
		pods = nil
		for i := range all {
			if all[i].Status.Phase == v1.PodRunning && all[i].Spec.NodeName == w.Name() {
				pods = append(pods, all[i])
			} else {
				err = errors.Join(err, fmt.Errorf("%s is %s %s %s", all[i].Name, all[i].Status.Phase, all[i].Status.Reason, all[i].Status.Message))
			}
		}
		if len(pods) == count {
			return nil
		}
		return errors.Join(fmt.Errorf("%d run", len(pods)), err)
	})
	holder := map[string]string{}
	for i := range pods {
		for _, id := range w.devices(&pods[i]) {
			if holder[id] != "" {
				w.t.Errorf("%s and %s have %s", holder[id], pods[i].Name, id)
			}
			holder[id] = pods[i].Name
		}
	}
	return pods
}

// devices are a running pod's, which sees just these.
func (w *worker) devices(pod *v1.Pod) []string {
	w.t.Helper()
	count := pod.Spec.Containers[0].Resources.Limits[gpu]
	_, held, err := w.AwaitDevices(w.ctx, pod.Name, gpu, int(count.Value()))
	w.must(err)
	return held
}
