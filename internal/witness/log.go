package witness

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// Log collects the log lines of a plugin, and tells somebody of each.
type Log struct {
	mu     sync.Mutex
	b      bytes.Buffer
	signal func()
}

// NewLog is an empty log. signal is called after each line, usually a Witness's.
func NewLog(signal func()) *Log { return &Log{signal: signal} }

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	n, err := l.b.Write(p)
	l.mu.Unlock()
	l.signal()
	return n, err
}

// String is everything that was logged.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Lines are those with all of the given texts.
func (l *Log) Lines(texts ...string) []string {
	var found []string
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(line, s) }) {
			found = append(found, line)
		}
	}
	return found
}
