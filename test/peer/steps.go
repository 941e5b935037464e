package peer

import (
	"fmt"
	"strings"
	"time"
)

// steps notes how long each step of something took.
type steps struct {
	last time.Time
	took []string
}

func newSteps() *steps { return &steps{last: time.Now()} }

func (s *steps) done(step string) {
	now := time.Now()
	s.took = append(s.took, fmt.Sprintf("%s %.2f s", step, now.Sub(s.last).Seconds()))
	s.last = now
}

func (s *steps) String() string { return strings.Join(s.took, ", ") }
