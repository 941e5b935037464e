package watch

import "context"

// Relay makes signals of a source that is read by blocking: next waits, and says whether what
// came tells to look again; an error of it is the end. shut ends a wait, and is called once,
// when ctx ends or after the end. The channel does not wait for its reader: one signal stands
// for all that came since. It is closed when nothing is left behind.
func Relay(ctx context.Context, next func() (bool, error), shut func()) <-chan struct{} {
	out := make(chan struct{}, 1)
	closed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		shut() // wakes the reader up
		close(closed)
	})
	go func() {
		defer close(out) // at last: whoever sees it knows that nothing is left behind
		defer func() {
			if !stop() {
				<-closed
				return
			}
			shut()
		}()
		for {
			tells, err := next()
			if err != nil {
				return
			}
			if !tells {
				continue
			}
			select {
			case out <- struct{}{}:
			default: // the reader has one waiting, which says the same
			}
		}
	}()
	return out
}
