//go:build node

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// expected are the series of an exporter as the API server, kubelet and the machine make them. Each
// metric that is in it is in it with all of its series.
type expected struct {
	metrics
	families map[string]bool
}

func (e *expected) want(value float64, name string, labels ...string) {
	e.families[name] = true
	e.metrics[series(name, labels...)] = value
}

// none says that a metric is to have no series, unless want gives it some.
func (e *expected) none(names ...string) {
	for _, name := range names {
		e.families[name] = true
	}
}

// series is a name with labels as they are written: sorted.
func series(name string, labels ...string) string {
	var all []string
	for pair := range slices.Chunk(labels, 2) {
		all = append(all, fmt.Sprintf("%s=%q", pair[0], pair[1]))
	}
	slices.Sort(all)
	if len(all) == 0 {
		return name
	}
	return name + "{" + strings.Join(all, ",") + "}"
}

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
		return want.differ(got)
	})
	w.t.Logf("%s: right after %.1f s", when, time.Since(began).Seconds())
}

// differ says what is wrong with a scrape.
func (e *expected) differ(got metrics) error {
	var errs []error
	for name := range e.families {
		for s, value := range got.family(name) {
			if want, ok := e.metrics[s]; !ok || want != value {
				errs = append(errs, fmt.Errorf("told is %s %v, want %v (at all: %t)", s, value, want, ok))
			}
		}
	}
	for s, value := range e.metrics {
		if _, ok := got[s]; !ok {
			errs = append(errs, fmt.Errorf("not told is %s %v", s, value))
		}
	}
	return errors.Join(errs...)
}

// expected asks everybody but the exporter.
func (w *worker) expected(ctx context.Context) (*expected, error) {
	e := &expected{metrics{}, map[string]bool{}}
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
	e.none("device_allocation_info", "resource_contested_devices", "allocations_not_released_oldest_timestamp_seconds")
	for _, h := range held {
		h.enter(e, pods[h.pod], claims[h.claim], w.hardware())
	}
	e.sources()
	if len(w.hcas()) > 0 {
		e.metrics[series("source_up", "source", "nic_rules")] = 1
		e.devices("none", w.unselected(), nil)
	}
	withDevices := map[string]bool{}
	for _, h := range held {
		withDevices[h.pod] = true
	}
	e.want(float64(len(withDevices)), "pod_uids", "result", "resolved")
	e.want(0, "pod_uids", "result", "ambiguous")
	e.want(0, "pod_uids", "result", "unknown")
	return e, w.numbers(ctx, e, pods, held, claims)
}

// sources: everybody answers, and nobody is old.
func (e *expected) sources() {
	for _, source := range []string{"hardware", "pod_resources", "allocatable", "pods_api", "plugin_sockets", "cdi_specs", "locks"} {
		e.metrics[series("source_up", "source", source)] = 1
		e.metrics[series("source_stale", "source", source)] = 0
	}
	for _, source := range []string{"checkpoint", "cdi_specs"} {
		e.metrics[series("allocations_not_released", "source", source)] = 0
	}
}

// numbers are those of the resources.
func (w *worker) numbers(ctx context.Context, e *expected, pods map[string]*v1.Pod, held []held, claims map[string]apiClaim) error {
	node, err := w.Client().CoreV1().Nodes().Get(ctx, w.Name(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	dra := node.Labels[modeLabel] == "dra"
	for _, p := range w.pools() {
		present := slices.DeleteFunc(slices.Clone(p.functions), func(id string) bool { return !p.present(id) })
		e.devices(p.name, p.units(p.functions...), p.units(present...))
		kept := 0
		if !dra {
			kept = keptForInit(pods, p.name)
		}
		if err := w.offered4Exporter(ctx, e, &p, present, held, kept, dra); err != nil {
			return err
		}
		allocatable := node.Status.Allocatable[v1.ResourceName(p.name)]
		if got := e.metrics[series("resource_allocatable", "resource", p.name)]; got != float64(allocatable.Value()) && !dra {
			return fmt.Errorf("kubelet has %v of %s allocatable, and the API server %s", got, p.name, allocatable.String())
		}
	}
	if dra {
		prepared, devices := 0, 0
		for _, c := range claims {
			prepared++
			devices += len(c.devices)
		}
		e.want(float64(prepared), "claims", "state", "Prepared")
		for _, state := range []string{"Damaged", "Preparing", "Unpreparing"} {
			e.want(0, "claims", "state", state)
		}
		e.none("kubelet_registered", "kubelet_plugin_sockets", "cdi_devices")
		if devices > 0 {
			e.cdi(draDriver+"/claim", devices)
		}
	}
	return nil
}

func (e *expected) devices(resource string, all, healthy []string) {
	e.want(float64(len(all)), "devices", "resource", resource, "state", "discovered")
	e.want(float64(len(all)-len(healthy)), "devices", "resource", resource, "state", "excluded")
	e.want(float64(len(healthy)), "devices", "resource", resource, "state", "healthy")
	e.want(0, "devices", "resource", resource, "state", "unhealthy")
}

func (e *expected) cdi(kind string, resolvable int) {
	for _, state := range []string{"missing", "stale", "conflicting", "unreadable", "unknown"} {
		e.want(0, "cdi_devices", "kind", kind, "state", state)
	}
	e.want(float64(resolvable), "cdi_devices", "kind", kind, "state", "resolvable")
}

// offered4Exporter is what kubelet would hand out of a resource, and what follows from that. kept are the
// devices that it keeps for init containers.
func (w *worker) offered4Exporter(ctx context.Context, e *expected, p *pool, present []string, held []held, kept int, dra bool) error {
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
	e.want(float64(len(offered)), "resource_allocatable", "resource", name)
	e.want(float64(len(taken)), "resource_allocated", "resource", name)
	e.want(float64(free-kept), "resource_free", "resource", name)
	for _, id := range present {
		yes := 1.0
		for _, unit := range p.units(id) {
			if !slices.Contains(offered, unit) {
				yes = 0
			}
		}
		e.want(1, "device_healthy", "resource", name, "pci_address", id)
		e.want(yes, "device_allocatable", "resource", name, "pci_address", id)
	}
	if dra {
		e.want(1, "resource_owner_info", "resource", name, "owner", "dra_driver")
		return nil
	}
	e.want(1, "resource_owner_info", "resource", name, "owner", "device_plugin")
	e.want(1, "kubelet_registered", "resource", name)
	e.want(1, "kubelet_plugin_sockets", "resource", name, "state", "listening")
	e.want(0, "kubelet_plugin_sockets", "resource", name, "state", "dead")
	e.cdi(name, len(offered))
	return nil
}
