//go:build !kubernetes134

package plane

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/config"
)

// The delays that kubelet has as constants (cm/dra/manager.go).
const (
	wipingDelay     = 30 * time.Second // from the loss of a driver to the removal of its slices
	reconcilePeriod = 60 * time.Second // between looks for claims whose pods are gone
)

// startManager is the manager's own Start, with delays that can be chosen, and with a loop
// whose end can be waited for.
func startManager(ctx context.Context, running *sync.WaitGroup, m *dra.Manager, o NodeOptions, pods dra.ActivePodsFunc, node dra.GetNodeFunc, sources config.SourcesReady) error {
	if err := set(m, "activePods", pods); err != nil {
		return err
	}
	if err := set(m, "sourcesReady", sources); err != nil {
		return err
	}
	startPlugins(m, ctx, node, orElse(o.Wiping, wipingDelay))
	running.Go(func() {
		wait.UntilWithContext(ctx, func(ctx context.Context) { reconcile(m, ctx) }, orElse(o.Reconcile, reconcilePeriod))
	})
	return nil
}

func orElse(d, or time.Duration) time.Duration {
	if d == 0 {
		return or
	}
	return d
}

// set sets a field of the manager for which it has no setter.
func set[T any](m *dra.Manager, name string, value T) error {
	field := reflect.ValueOf(m).Elem().FieldByName(name)
	if !field.IsValid() || field.Type() != reflect.TypeFor[T]() {
		return fmt.Errorf("set %s of kubelet's DRA manager: this version keeps it elsewhere", name)
	}
	*(*T)(field.Addr().UnsafePointer()) = value
	return nil
}

// startPlugins begins to follow drivers, and removes the node's slices as each start of
// kubelet does.
//
//go:linkname startPlugins k8s.io/kubernetes/pkg/kubelet/cm/dra.(*Manager).initDRAPluginManager
func startPlugins(m *dra.Manager, ctx context.Context, node dra.GetNodeFunc, wiping time.Duration) //nolint:revive // a method: its receiver is first

// reconcile releases the claims of pods that are gone, once.
//
//go:linkname reconcile k8s.io/kubernetes/pkg/kubelet/cm/dra.(*Manager).reconcileLoop
func reconcile(m *dra.Manager, ctx context.Context) //nolint:revive // a method: its receiver is first
