package dradriver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
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
	// underWay is how long a difference may last without anybody being told: a change is written
	// in less.
	underWay = 2 * time.Second
)

// publisher writes ResourceSlices.
type publisher struct {
	ctx     context.Context //nolint:containedctx // of the controllers, which outlive the call that starts them
	client  kubernetes.Interface
	node    string
	problem func(err error, message string)
	handed  chan struct{} // has room for one: something was published, and is to be checked soon

	mu         sync.Mutex
	writing    *writer // nil before the first publication
	resources  resourceslice.DriverResources
	devices    []resourceapi.Device // in it, by name
	uid        types.UID            // of the node
	generation int                  // counts changes of what is to be there
	differs    time.Time            // since when the API server has others, zero while it has not
	restarted  time.Time            // when that made it begin anew
	agrees     bool                 // what the last check found
}

// writer is one controller's life. The library waits for its first list before it hands the
// controller out, which takes as long as the API server does.
type writer struct {
	end        context.CancelFunc
	done       chan struct{}
	controller *resourceslice.Controller // nil until it is up; under the publisher's mu
}

func newPublisher(ctx context.Context, client kubernetes.Interface, node string, problem func(error, string)) *publisher {
	return &publisher{ctx: ctx, client: client, node: node, problem: problem, handed: make(chan struct{}, 1)}
}

// publish makes the slices say what a pool says, and does not wait for it. The first call begins
// to write. For another node of the same name writing begins anew: the controller goes on naming the
// owner that it was started with, and the garbage collector removes what belongs to nobody.
func (p *publisher) publish(pool resourceslice.Pool, node types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	another := p.uid != node
	p.resources = resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{p.node: pool}}
	p.devices, p.uid, p.differs, p.restarted = devicesIn(pool), node, time.Time{}, time.Time{}
	p.generation++
	switch {
	case p.writing == nil || another:
		p.start()
	case p.writing.controller != nil:
		p.writing.controller.Update(&p.resources)
	}
	select {
	case p.handed <- struct{}{}:
	default:
	}
}

// start begins to write, after what wrote before has ended. It does not wait, and has to be called
// with the lock.
func (p *publisher) start() {
	ctx, end := context.WithCancel(p.ctx)
	before, w := p.writing, &writer{end: end, done: make(chan struct{})}
	p.writing = w
	if before != nil {
		before.end()
	}
	first, owner := p.resources, &resourceslice.Owner{APIVersion: "v1", Kind: "Node", Name: p.node, UID: p.uid}
	go func() {
		defer close(w.done)
		defer end()
		if before != nil {
			<-before.done
		}
		p.write(ctx, w, first, owner)
	}()
}

// write is a writer's life, until ctx ends.
func (p *publisher) write(ctx context.Context, w *writer, first resourceslice.DriverResources, owner *resourceslice.Owner) {
	delay := rewriteAfter
	c, err := resourceslice.StartController(ctx, resourceslice.Options{
		DriverName: dra.Driver, KubeClient: p.client, Resources: &first, SyncDelay: &delay, Owner: owner,
		ErrorHandler: func(_ context.Context, err error, message string) {
			if ctx.Err() == nil { // what is ended fails
				p.problem(err, message)
			}
		},
	})
	if err != nil {
		if ctx.Err() == nil {
			p.problem(err, "writing ResourceSlices")
		}
		return // a check finds that nothing is written, and begins anew
	}
	defer c.Stop()
	p.mu.Lock()
	if p.writing == w {
		w.controller = c
		c.Update(&p.resources) // what was published while it was on its way
	}
	p.mu.Unlock()
	<-ctx.Done()
}

// check holds what the API server has against what was published, and says how many slices there
// are. A difference is an error while it lasts, and one that lasts long makes it begin anew. Taints
// do not count where the API server drops them.
func (p *publisher) check(ctx context.Context, now time.Time, tainted bool) (published int, err error) {
	p.mu.Lock()
	generation, idle := p.generation, p.writing == nil
	p.mu.Unlock()
	if idle {
		return 0, nil
	}
	list, err := p.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
		FieldSelector: "spec.driver=" + dra.Driver + ",spec.nodeName=" + p.node,
	})
	if err != nil {
		return 0, fmt.Errorf("read ResourceSlices: %w", err)
	}
	var there []resourceapi.Device
	for i := range list.Items {
		there = append(there, list.Items[i].Spec.Devices...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.generation != generation {
		return len(list.Items), nil // the answer is older than what was published: the next one tells
	}
	difference := compare(there, p.devices, tainted)
	if p.agrees = difference == nil && len(list.Items) > 0; p.agrees {
		p.differs, p.restarted = time.Time{}, time.Time{}
		return len(list.Items), nil
	}
	if difference == nil {
		difference = errNoSlice
	}
	if p.differs.IsZero() {
		p.differs, p.restarted = now, now
	}
	if now.Sub(p.restarted) >= differing {
		p.restarted = now
		p.start()
	}
	if now.Sub(p.differs) < underWay {
		return len(list.Items), nil
	}
	return len(list.Items), difference
}

// inStep says whether the last check found at the API server what was published.
func (p *publisher) inStep() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.agrees
}

// lags says whether a difference has lasted for longer than it takes to write.
func (p *publisher) lags(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.differs.IsZero() && now.Sub(p.differs) >= differing
}

// stop ends writing, and returns when it has ended. The slices stay.
func (p *publisher) stop() {
	p.mu.Lock()
	w := p.writing
	p.writing, p.agrees = nil, false
	p.generation++ // a check that runs is about nothing any more
	p.mu.Unlock()
	if w != nil {
		w.end()
		<-w.done
	}
}

// devicesIn are a pool's devices, by name.
func devicesIn(pool resourceslice.Pool) []resourceapi.Device {
	var all []resourceapi.Device
	for _, s := range pool.Slices {
		all = append(all, s.Devices...)
	}
	return byName(all)
}

func byName(all []resourceapi.Device) []resourceapi.Device {
	return slices.SortedFunc(slices.Values(all), func(a, b resourceapi.Device) int { return strings.Compare(a.Name, b.Name) })
}
