package kubelet

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// poll is how often Await looks without having been told to. Everything in the
// kubelet wakes it; this is for conditions that also look elsewhere, at a plugin's
// files for example, whose changes the kubelet does not hear of.
const poll = 20 * time.Millisecond

// Await waits until the condition holds. It is checked at once and then after
// each registration, device list, lost connection, admission and removal. The
// error of a wait that ctx ends says what the kubelet showed.
func (k *Kubelet) Await(ctx context.Context, condition func() bool) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		next := k.changes.next() // before the look, or a change during it would be lost
		if condition() {
			return nil
		}
		select {
		case <-next:
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait on the kubelet in %s, which shows %s: %w", k.dir, k, context.Cause(ctx))
		}
	}
}

// changes wakes any number of waiters at once.
type changes struct {
	mu sync.Mutex
	ch chan struct{}
}

func newChanges() *changes { return &changes{ch: make(chan struct{})} }

// next is closed at the next change.
func (c *changes) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ch
}

func (c *changes) broadcast() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.ch)
	c.ch = make(chan struct{})
}
