package dradriver

import "sync"

// atomicErrors remembers what was said last, so that what repeats is said once.
type atomicErrors struct {
	mu   sync.Mutex
	last string
}

// news says whether something was not said last.
func (a *atomicErrors) news(text string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last == text {
		return false
	}
	a.last = text
	return true
}
