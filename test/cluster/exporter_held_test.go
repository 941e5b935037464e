//go:build node

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/test/cluster/told"
	"kata-device-plugin/test/peer"
)

// held is a device that a container has, to kubelet.
type held struct{ pod, container, resource, device, claim string }

func (h *held) enter(e *told.Expected, pod *v1.Pod, claim apiClaim, names map[string]string) {
	labels := []string{"namespace", peer.Namespace, "pod", h.pod, "container", h.container, "device", h.device, "resource", h.resource,
		"pod_uid", string(pod.UID)}
	if h.claim == "" {
		function, _, _ := strings.Cut(h.device, "::") // and the number of a share
		labels = append(labels, "pci_address", function, "source", "device_plugin", "driver", "", "pool", "", "claim", "", "request", "",
			"admin_access", "false")
	} else {
		labels = append(labels, "pci_address", names[h.device], "source", "dra", "driver", draDriver, "pool", pod.Spec.NodeName,
			"claim", h.claim, "request", claim.devices[h.device], "admin_access", "false")
	}
	e.Want(1, "device_allocation_info", labels...)
}

// heldOfKubelet is kubelet's whole answer.
func (w *worker) heldOfKubelet(ctx context.Context) (all []held, err error) {
	err = w.PodResources(func(client podresources.PodResourcesListerClient) error {
		list, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
		for _, p := range list.GetPodResources() {
			for _, c := range p.GetContainers() {
				for _, d := range c.GetDevices() {
					for _, id := range d.GetDeviceIds() {
						all = append(all, held{pod: p.GetName(), container: c.GetName(), resource: d.GetResourceName(), device: id})
					}
				}
				for _, d := range c.GetDynamicResources() {
					for _, r := range d.GetClaimResources() {
						all = append(all, held{pod: p.GetName(), container: c.GetName(), device: r.GetDeviceName(), claim: d.GetClaimName()})
					}
				}
			}
		}
		return err
	})
	return all, err
}

// podsOfAPI are the node's pods in the namespace of the test that have not ended, by name.
func (w *worker) podsOfAPI(ctx context.Context) (map[string]*v1.Pod, error) {
	list, err := w.Client().CoreV1().Pods(peer.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "status.phase!=Failed,status.phase!=Succeeded,spec.nodeName=" + w.Name(),
	})
	if err != nil {
		return nil, err
	}
	all := map[string]*v1.Pod{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all, nil
}

// apiClaim is a claim as the scheduler has allocated it: the request of each device.
type apiClaim struct{ devices map[string]string }

// claimed4Exporter are the claims of pods, by name.
func (w *worker) claimed4Exporter(ctx context.Context, pods map[string]*v1.Pod) (map[string]apiClaim, error) {
	all := map[string]apiClaim{}
	for _, pod := range pods {
		var names []string
		for _, s := range pod.Status.ResourceClaimStatuses {
			names = append(names, *s.ResourceClaimName)
		}
		if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
			names = append(names, s.ResourceClaimName)
		}
		for _, name := range names {
			claim, err := w.Client().ResourceV1().ResourceClaims(peer.Namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			if claim.Status.Allocation == nil {
				return nil, fmt.Errorf("claim %s is not allocated", name)
			}
			of := apiClaim{map[string]string{}}
			for _, r := range claim.Status.Allocation.Devices.Results {
				of.devices[r.Device] = r.Request
			}
			all[name] = of
		}
	}
	return all, nil
}

// agree complains unless the API server's pods run, and have to kubelet what they ask for.
func agree(pods map[string]*v1.Pod, all []held, claims map[string]apiClaim) error {
	got, want := map[string]int{}, map[string]int{}
	for _, h := range all {
		if pods[h.pod] == nil {
			return fmt.Errorf("kubelet has the pod %s, and the API server has not", h.pod)
		}
		if _, ok := claims[h.claim].devices[h.device]; h.claim != "" && !ok {
			return fmt.Errorf("kubelet has %s in claim %s, and the API server has not", h.device, h.claim)
		}
		got[h.pod+"/"+h.container]++
	}
	for name, pod := range pods {
		if !isReady(pod) {
			return fmt.Errorf("pod %s is not ready", name)
		}
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			if slices.ContainsFunc(pod.Spec.Containers, func(o v1.Container) bool { return o.Name == c.Name }) || c.RestartPolicy != nil {
				if n := asks(pod, &c, claims); n > 0 {
					want[name+"/"+c.Name] = n
				}
			}
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("to kubelet the containers have %v, and to the API server %v", got, want)
	}
	return nil
}

// asks is how many devices a container asks for.
func asks(pod *v1.Pod, c *v1.Container, claims map[string]apiClaim) int {
	n := 0
	for _, name := range []v1.ResourceName{gpu, hca} {
		count := c.Resources.Limits[name]
		n += int(count.Value())
	}
	for _, of := range c.Resources.Claims {
		for _, s := range pod.Status.ResourceClaimStatuses {
			if s.Name == of.Name {
				n += len(claims[*s.ResourceClaimName].devices)
			}
		}
	}
	return n
}

// watchExporter scrapes until it is ended. What is held now is to be told all the time, for it is held
// all the time, or its source is to be told to be old.
func (w *worker) watchExporter() *watch {
	w.t.Helper()
	steady := slices.Sorted(maps.Keys(w.scraped().Family("device_allocation_info")))
	ctx, cancel := context.WithCancel(w.ctx)
	a := &watch{stop: cancel, done: make(chan error, 1)}
	w.t.Cleanup(cancel)
	go func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		var wrong error
		for {
			if m, err := w.scrape(ctx); err == nil { // it may be restarting
				a.seen++
				wrong = cmp.Or(wrong, lies(m, steady))
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				a.done <- wrong
				return
			}
		}
	}()
	return a
}

// lies says what is not told of what is held.
func lies(m told.Metrics, steady []string) error {
	stale, known := m[`source_stale{source="pod_resources"}`]
	if !known || stale == 1 {
		if all := m.Family("device_allocation_info"); len(all) > 0 {
			return fmt.Errorf("the source is old, and %d series of it are told", len(all))
		}
		return nil
	}
	for _, s := range steady {
		if _, ok := m[s]; !ok {
			return fmt.Errorf("at %f kubelet is told to have answered (up %v), and not told is %s; allocated are told to be %v, free %v",
				m["state_timestamp_seconds"], m[`source_up{source="pod_resources"}`], s, m.Family("resource_allocated"), m.Family("resource_free"))
		}
	}
	return nil
}

// keptForInit are the devices of a resource that kubelet keeps until the pods end, though no container has
// them any more: an init container has had more than the containers after it want.
func keptForInit(pods map[string]*v1.Pod, name string) int {
	kept := 0
	for _, pod := range pods {
		of := func(c *v1.Container) int { q := c.Resources.Limits[v1.ResourceName(name)]; return int(q.Value()) }
		sidecars, most, running := 0, 0, 0
		for i := range pod.Spec.InitContainers {
			c := &pod.Spec.InitContainers[i]
			if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
				sidecars += of(c)
				continue
			}
			most = max(most, sidecars+of(c))
		}
		for i := range pod.Spec.Containers {
			running += of(&pod.Spec.Containers[i])
		}
		kept += max(most-sidecars-running, 0)
	}
	return kept
}
