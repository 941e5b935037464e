//go:build node

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/test/cluster/told"
)

// right waits until the exporter says what everybody else says.
func (w *worker) right(when string) {
	w.t.Helper()
	began := time.Now()
	w.await("the metrics: "+when, func(ctx context.Context) error {
		want, err := w.expected(ctx)
		if err != nil {
			return err
		}
		got, err := w.scrape(ctx)
		if err != nil {
			return err
		}
		return want.Differ(got)
	})
	w.t.Logf("%s: right after %.1f s", when, time.Since(began).Seconds())
}

// expected asks everybody but the exporter.
func (w *worker) expected(ctx context.Context) (*told.Expected, error) {
	e := told.NewExpected()
	pods, err := w.podsOfAPI(ctx)
	if err != nil {
		return nil, err
	}
	held, err := w.heldOfKubelet(ctx)
	if err != nil {
		return nil, err
	}
	claims, err := w.claimed4Exporter(ctx, pods)
	if err != nil {
		return nil, err
	}
	if err := agree(pods, held, claims); err != nil {
		return nil, err
	}
	e.None("device_allocation_info", "resource_contested_devices", "allocations_not_released_oldest_timestamp_seconds")
	for _, h := range held {
		h.enter(e, pods[h.pod], claims[h.claim], w.hardware())
	}
	sources(e)
	if len(w.hcas()) > 0 {
		e.Among(1, "source_up", "source", "nic_rules")
		devices(e, "none", w.unselected(), nil)
	}
	withDevices := map[string]bool{}
	for _, h := range held {
		withDevices[h.pod] = true
	}
	e.Want(float64(len(withDevices)), "pod_uids", "result", "resolved")
	e.Want(0, "pod_uids", "result", "ambiguous")
	e.Want(0, "pod_uids", "result", "unknown")
	return e, w.numbers(ctx, e, pods, held, claims)
}

// sources: everybody answers, and nobody is old.
func sources(e *told.Expected) {
	for _, source := range []string{"hardware", "pod_resources", "allocatable", "pods_api", "plugin_sockets", "cdi_specs", "locks"} {
		e.Among(1, "source_up", "source", source)
		e.Among(0, "source_stale", "source", source)
	}
	for _, source := range []string{"checkpoint", "cdi_specs"} {
		e.Among(0, "allocations_not_released", "source", source)
	}
}

// numbers are those of the resources.
func (w *worker) numbers(ctx context.Context, e *told.Expected, pods map[string]*v1.Pod, held []held, claims map[string]apiClaim) error {
	node, err := w.Client().CoreV1().Nodes().Get(ctx, w.Name(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	dra := node.Labels[modeLabel] == "dra"
	for _, p := range w.pools() {
		present := slices.DeleteFunc(slices.Clone(p.functions), func(id string) bool { return !p.present(id) })
		devices(e, p.name, p.units(p.functions...), p.units(present...))
		kept := 0
		if !dra {
			kept = keptForInit(pods, p.name)
		}
		if err := w.offered4Exporter(ctx, e, &p, present, held, kept, dra); err != nil {
			return err
		}
		allocatable := node.Status.Allocatable[v1.ResourceName(p.name)]
		if got := e.Value("resource_allocatable", "resource", p.name); got != float64(allocatable.Value()) && !dra {
			return fmt.Errorf("kubelet has %v of %s allocatable, and the API server %s", got, p.name, allocatable.String())
		}
	}
	if dra {
		prepared, devices := 0, 0
		for _, c := range claims {
			prepared++
			devices += len(c.devices)
		}
		e.Want(float64(prepared), "claims", "state", "Prepared")
		for _, state := range []string{"Damaged", "Preparing", "Unpreparing"} {
			e.Want(0, "claims", "state", state)
		}
		e.None("kubelet_registered", "kubelet_plugin_sockets", "cdi_devices")
		if devices > 0 {
			cdiNames(e, draDriver+"/claim", devices)
		}
	}
	return nil
}

func devices(e *told.Expected, resource string, all, healthy []string) {
	e.Want(float64(len(all)), "devices", "resource", resource, "state", "discovered")
	e.Want(float64(len(all)-len(healthy)), "devices", "resource", resource, "state", "excluded")
	e.Want(float64(len(healthy)), "devices", "resource", resource, "state", "healthy")
	e.Want(0, "devices", "resource", resource, "state", "unhealthy")
}

func cdiNames(e *told.Expected, kind string, resolvable int) {
	for _, state := range []string{"missing", "stale", "conflicting", "unreadable", "unknown"} {
		e.Want(0, "cdi_devices", "kind", kind, "state", state)
	}
	e.Want(float64(resolvable), "cdi_devices", "kind", kind, "state", "resolvable")
}

// offered4Exporter is what kubelet would hand out of a resource, and what follows from that. kept are the
// devices that it keeps for init containers.
func (w *worker) offered4Exporter(ctx context.Context, e *told.Expected, p *pool, present []string, held []held, kept int, dra bool) error {
	name := p.name
	offered, err := w.Allocatable(ctx, name)
	if err != nil {
		return err
	}
	taken := map[string]bool{}
	for _, h := range held {
		if h.resource == name {
			taken[h.device] = true
		}
	}
	free := 0
	for _, id := range offered {
		if !taken[id] {
			free++
		}
	}
	e.Want(float64(len(offered)), "resource_allocatable", "resource", name)
	e.Want(float64(len(taken)), "resource_allocated", "resource", name)
	e.Want(float64(free-kept), "resource_free", "resource", name)
	for _, id := range present {
		yes := 1.0
		for _, unit := range p.units(id) {
			if !slices.Contains(offered, unit) {
				yes = 0
			}
		}
		e.Want(1, "device_healthy", "resource", name, "pci_address", id)
		e.Want(yes, "device_allocatable", "resource", name, "pci_address", id)
	}
	if dra {
		e.Want(1, "resource_owner_info", "resource", name, "owner", "dra_driver")
		return nil
	}
	e.Want(1, "resource_owner_info", "resource", name, "owner", "device_plugin")
	e.Want(1, "kubelet_registered", "resource", name)
	e.Want(1, "kubelet_plugin_sockets", "resource", name, "state", "listening")
	e.Want(0, "kubelet_plugin_sockets", "resource", name, "state", "dead")
	cdiNames(e, name, len(offered))
	return nil
}
