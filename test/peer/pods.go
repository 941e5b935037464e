package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Namespace is the one of every pod here.
const Namespace = "default"

// The container of a pod made by NewPod, and what it does: it lists the VFIO nodes that
// it sees, and ends as soon as it is asked to.
const (
	container = "c"
	script    = `for n in /dev/vfio/* /dev/vfio/devices/*; do
  [ -c "$n" ] && stat -c 'node %n %t %T' "$n"
done
echo started
trap 'exit 0' TERM
while :; do sleep 3600 & wait $!; done`
)

// NewPod is a pod whose container asks for so many devices of a resource.
func NewPod(name, res string, count int64) *v1.Pod {
	grace := int64(1)
	limits := v1.ResourceList{v1.ResourceName(res): *resource.NewQuantity(count, resource.DecimalSI)}
	return &v1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
		Spec: v1.PodSpec{
			DNSPolicy:                     v1.DNSDefault,
			TerminationGracePeriodSeconds: &grace,
			Containers: []v1.Container{{
				Name: container, Image: BusyboxImage, ImagePullPolicy: v1.PullNever,
				Command:   []string{"/bin/sh", "-c", script},
				Resources: v1.ResourceRequirements{Limits: limits, Requests: limits},
			}},
		},
	}
}

// StaticPod hands a manifest to kubelet. A resource of which kubelet has not heard yet is
// one that it would leave out without a word: wait for the devices first.
func (n *Node) StaticPod(pod *v1.Pod) error {
	data, err := json.Marshal(pod)
	aside := filepath.Join(n.dir, "manifest")
	if err == nil {
		err = os.WriteFile(aside, data, 0o600)
	}
	if err == nil {
		err = os.Rename(aside, n.manifest(pod.Name))
	}
	if err != nil {
		return fmt.Errorf("place the manifest of pod %s: %w", pod.Name, err)
	}
	return nil
}

func (n *Node) manifest(pod string) string { return filepath.Join(n.dir, "manifests", pod+".json") }

// RemovePod takes a pod's manifest away and waits until kubelet has forgotten the pod.
func (n *Node) RemovePod(ctx context.Context, name string) error {
	if err := os.Remove(n.manifest(name)); err != nil {
		return fmt.Errorf("remove the manifest of pod %s: %w", name, err)
	}
	return Await(ctx, "the end of pod "+name, func(ctx context.Context) error {
		pod, err := n.PodStatus(ctx, name)
		if err == nil && pod != nil {
			err = fmt.Errorf("kubelet shows it as %s", pod.Status.Phase)
		}
		return err
	})
}

// full is the name of a pod to kubelet, which gives another one to a pod of a manifest.
func (n *Node) full(name string) string {
	if n.options.Join != nil {
		return name // by the API server's name
	}
	return name + "-" + n.name
}

// PodStatus is a pod as kubelet shows it, nil if it does not.
func (n *Node) PodStatus(ctx context.Context, name string) (*v1.Pod, error) {
	body, err := n.get(ctx, "http://"+readAddress+"/pods")
	if err != nil {
		return nil, err
	}
	var list v1.PodList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("read kubelet's pods: %w", err)
	}
	for i := range list.Items {
		if list.Items[i].Name == n.full(name) {
			return &list.Items[i], nil
		}
	}
	return nil, nil
}

// AwaitPod waits until there is nothing to complain about a pod, and returns it.
func (n *Node) AwaitPod(ctx context.Context, name, what string, look func(*v1.Pod) error) (*v1.Pod, error) {
	var pod *v1.Pod
	err := Await(ctx, "pod "+name+" "+what, func(ctx context.Context) (err error) {
		if pod, err = n.PodStatus(ctx, name); err != nil {
			return err
		}
		if pod == nil {
			return errors.New("kubelet does not show it")
		}
		if err := look(pod); err != nil {
			return fmt.Errorf("%w: %s", err, describe(pod))
		}
		return nil
	})
	return pod, err
}

// AwaitRunning waits until a pod's container has done its work and waits for the end.
// The pod is returned with what the container saw: path to "major:minor".
func (n *Node) AwaitRunning(ctx context.Context, name string) (pod *v1.Pod, nodes map[string]string, err error) {
	pod, err = n.AwaitPod(ctx, name, "to run", func(pod *v1.Pod) error {
		c := Container(pod)
		if pod.Status.Phase != v1.PodRunning || c.State.Running == nil {
			return errors.New("it does not run")
		}
		nodes, err = n.seen(pod, int(c.RestartCount))
		return err
	})
	return pod, nodes, err
}

// Container is the status of a pod's only container.
func Container(pod *v1.Pod) v1.ContainerStatus {
	if len(pod.Status.ContainerStatuses) == 0 {
		return v1.ContainerStatus{}
	}
	return pod.Status.ContainerStatuses[0]
}

// containerID leaves out the runtime's name.
func containerID(id string) string {
	_, bare, found := strings.Cut(id, "://")
	if !found {
		return id
	}
	return bare
}

// describe is a pod's status in a line.
func describe(pod *v1.Pod) string {
	s, c := pod.Status, Container(pod)
	text := fmt.Sprintf("%s %s %s, %d restarts", s.Phase, s.Reason, s.Message, c.RestartCount)
	if w := c.State.Waiting; w != nil {
		text += ", waiting: " + w.Reason + " " + w.Message
	}
	return text
}

// seen reads what a container of NewPod has logged in one of its lives.
func (n *Node) seen(pod *v1.Pod, life int) (map[string]string, error) {
	file := filepath.Join(n.dir, "log/pods", fmt.Sprintf("%s_%s_%s", pod.Namespace, pod.Name, pod.UID), container, fmt.Sprintf("%d.log", life))
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the container's log: %w", err)
	}
	nodes := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // time, stream, tag, then what was printed
		switch {
		case len(fields) == 4 && fields[3] == "started":
			return nodes, nil
		case len(fields) == 7 && fields[3] == "node":
			var major, minor uint32
			if _, err := fmt.Sscanf(fields[5]+" "+fields[6], "%x %x", &major, &minor); err != nil {
				return nil, fmt.Errorf("read the container's log: %q: %w", line, err)
			}
			nodes[fields[4]] = fmt.Sprintf("%d:%d", major, minor)
		}
	}
	return nil, errors.New("the container has not listed its nodes yet")
}
