package cli

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"kata-device-plugin/internal/exit"
)

// How long a command has to end in order when it is told to, and when it says that it has not yet: what
// runs inside of sim has ten seconds itself.
const (
	endGrace = 12 * time.Second
	endWord  = time.Second
)

// Process is Main for a whole process. A read of a pipe that nobody writes to cannot be told to end, so
// when ctx has ended and the command does not, the process ends without it, a while later. stop gives
// signals back to the system: the next one ends the process at once. What a command writes is whole or not
// there. Only a simulated node would be left: while there is one, signals are its command's.
func Process(ctx context.Context, stop context.CancelFunc, env Env) int {
	env.simulates = &atomic.Bool{}
	ended := make(chan int, 1)
	go func() { ended <- Main(ctx, env) }()
	select {
	case code := <-ended:
		return code
	case <-ctx.Done():
	}
	if !env.simulates.Load() {
		stop()
	}
	word, last := time.NewTimer(endWord), time.NewTimer(endGrace)
	defer word.Stop()
	defer last.Stop()
	for {
		select {
		case code := <-ended:
			return code
		case <-word.C:
			fmt.Fprintf(env.Stderr, "%s: waiting for a read or a command to end; another signal ends this one at once\n", env.Name)
		case <-last.C:
			return exit.Interrupted
		}
	}
}
