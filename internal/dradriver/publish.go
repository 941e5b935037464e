package dradriver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"kata-device-plugin/internal/dra"
)

const (
	// rewriteAfter is how long after a change by somebody else the slices are written anew: kubelet
	// removes all of them when it starts. The library's half a minute would be half a minute in
	// which no pod comes to the node.
	rewriteAfter = 5 * time.Second
	// differing is how long the API server may have other devices than were published. Behind a
	// control plane that was set back to an earlier day, a controller waits for versions that will
	// not come.
	differing = 15 * time.Second
)

// publisher writes ResourceSlices.
type publisher struct {
	ctx     context.Context //nolint:containedctx // of the controller, which outlives the call that starts it
	client  kubernetes.Interface
	node    string
	problem func(err error, message string)

	mu         sync.Mutex
	controller *resourceslice.Controller // nil before the first publication
	resources  resourceslice.DriverResources
	names      []string  // of the devices in it, sorted
	uid        types.UID // of the node
	differs    time.Time // since when the API server has others, zero while it has not
}

// publish makes the slices say what a pool says. The first call begins to write.
func (p *publisher) publish(pool resourceslice.Pool, node types.UID) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resources = resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{p.node: pool}}
	p.names, p.uid, p.differs = namesIn(pool), node, time.Time{}
	if p.controller != nil {
		p.controller.Update(&p.resources)
		return nil
	}
	return p.start()
}

func (p *publisher) start() error {
	delay := rewriteAfter
	c, err := resourceslice.StartController(p.ctx, resourceslice.Options{
		DriverName: dra.Driver, KubeClient: p.client, Resources: &p.resources, SyncDelay: &delay,
		Owner:        &resourceslice.Owner{APIVersion: "v1", Kind: "Node", Name: p.node, UID: p.uid},
		ErrorHandler: func(_ context.Context, err error, message string) { p.problem(err, message) },
	})
	if err != nil {
		return fmt.Errorf("write ResourceSlices: %w", err)
	}
	p.controller = c
	return nil
}

// check holds what the API server has against what was published, and how many slices there are. A
// difference that lasts makes it begin anew.
func (p *publisher) check(ctx context.Context, now time.Time) (published int, err error) {
	list, err := p.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
		FieldSelector: "spec.driver=" + dra.Driver + ",spec.nodeName=" + p.node,
	})
	if err != nil {
		return 0, fmt.Errorf("read ResourceSlices: %w", err)
	}
	var names []string
	for i := range list.Items {
		for _, d := range list.Items[i].Spec.Devices {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.controller == nil || slices.Equal(names, p.names):
		p.differs = time.Time{}
		return len(list.Items), nil
	case p.differs.IsZero():
		p.differs = now
		return len(list.Items), nil
	case now.Sub(p.differs) < differing:
		return len(list.Items), nil
	}
	p.differs = time.Time{}
	p.controller.Stop()
	p.controller = nil
	return len(list.Items), errors.Join(
		fmt.Errorf("the API server has %d devices of the node, and %d were published: writing them anew", len(names), len(p.names)), p.start())
}

// stop ends writing. The slices stay.
func (p *publisher) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.controller != nil {
		p.controller.Stop()
		p.controller = nil
	}
}

// namesIn are the names of a pool's devices.
func namesIn(pool resourceslice.Pool) []string {
	var names []string
	for _, s := range pool.Slices {
		for _, d := range s.Devices {
			names = append(names, d.Name)
		}
	}
	slices.Sort(names)
	return names
}
