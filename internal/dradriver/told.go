package dradriver

import (
	"sync"
	"time"
)

// forget is how long what was said counts as said.
const forget = 10 * time.Minute

// said remembers what was said, so that what repeats is said once, also when several things take
// turns.
type said struct {
	mu   sync.Mutex
	when map[string]time.Time // by text
}

// news says whether something was not said, or long ago.
func (s *said) news(text string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, when := range s.when {
		if now.Sub(when) >= forget {
			delete(s.when, old)
		}
	}
	if _, known := s.when[text]; known {
		return false
	}
	if s.when == nil {
		s.when = map[string]time.Time{}
	}
	s.when[text] = now
	return true
}

// over forgets everything: it has worked, and what comes next is news.
func (s *said) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.when = nil
}
