package peer

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// poll is how often a condition is looked at whose change nobody announces.
const poll = 20 * time.Millisecond

// Await looks until there is nothing to complain about. The error of a wait that ctx ends
// says what was waited for, and what the last look complained about.
func Await(ctx context.Context, what string, look func(context.Context) error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	var last error
	for {
		err := look(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // one that ctx caused says nothing
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", what, errors.Join(context.Cause(ctx), last))
		}
	}
}
