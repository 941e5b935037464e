//go:build !kubernetes134

package plane

import (
	"strings"
	"sync"
)

const (
	verbosity = 3   // at which the scheduler says why a pod waits
	kept      = 400 // lines
)

// journal keeps the last lines of a log. Kubernetes' parts log from goroutines that may
// outlive their end by a little, so it can be written to for ever.
type journal struct {
	mu    sync.Mutex
	lines []string
	next  int // the oldest line, once all places are taken
}

// Write implements io.Writer. Each call is a line, or several.
func (r *journal) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.TrimRight(string(line), "\n")
	if len(r.lines) < kept {
		r.lines = append(r.lines, text)
		return len(line), nil
	}
	r.lines[r.next] = text
	r.next = (r.next + 1) % kept
	return len(line), nil
}

// String is what was kept, the oldest line first.
func (r *journal) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(append(r.lines[r.next:len(r.lines):len(r.lines)], r.lines[:r.next]...), "\n")
}
