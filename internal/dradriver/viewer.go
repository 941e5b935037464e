package dradriver

import (
	"context"
	"fmt"
	"sync"

	"kata-device-plugin/internal/prepare"
)

// viewer asks kubelet who has which device, once for all who wait for it: kubelet answers a hundred
// calls a second, and ten at once (pkg/kubelet/apis/podresources/constants.go).
type viewer struct {
	ask func(context.Context) (prepare.View, error)

	mu   sync.Mutex
	next *question // that begins when the one that runs has ended, nil for none
	busy bool
}

// question is one that several wait for.
type question struct {
	done chan struct{}
	view prepare.View // shared: nobody changes it
	err  error
}

// view is an answer to a question that began after the call.
func (v *viewer) view(ctx context.Context) (prepare.View, error) {
	v.mu.Lock()
	q := v.next
	if q == nil {
		q = &question{done: make(chan struct{})}
		v.next = q
	}
	if !v.busy {
		v.busy = true
		go v.run(context.WithoutCancel(ctx)) // others may wait when this caller has gone
	}
	v.mu.Unlock()
	select {
	case <-q.done:
		return q.view, q.err
	case <-ctx.Done():
		return prepare.View{}, fmt.Errorf("ask kubelet who has which device: %w", context.Cause(ctx))
	}
}

// run asks until nobody waits. Whoever comes while a question runs waits for the next one.
func (v *viewer) run(ctx context.Context) {
	for {
		v.mu.Lock()
		q := v.next
		v.next, v.busy = nil, q != nil
		v.mu.Unlock()
		if q == nil {
			return
		}
		q.answer(ctx, v.ask)
	}
}

func (q *question) answer(ctx context.Context, ask func(context.Context) (prepare.View, error)) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	q.view, q.err = ask(ctx)
	close(q.done)
}
