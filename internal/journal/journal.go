// Package journal writes one line to the log for each change, and none for what stays as it is.
package journal

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"kata-device-plugin/internal/finding"
)

// Journal remembers what was logged. It may be used by several goroutines.
type Journal struct {
	log *slog.Logger

	mu       sync.Mutex
	standing map[string]finding.Finding // findings that were logged, by key
	errors   map[string]string          // the last error of each part
	ready    bool
}

// New makes a journal in which nothing has been logged.
func New(log *slog.Logger) *Journal {
	return &Journal{log: log, standing: map[string]finding.Finding{}, errors: map[string]string{}}
}

// Once logs an error of a part of the work when it is another one than that part's last,
// and when it is over.
func (j *Journal) Once(part string, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch before := j.errors[part]; {
	case text == before:
	case text == "":
		j.log.Info("restored", "part", part)
	default:
		j.log.Warn("degraded", "part", part, "reason", text)
	}
	j.errors[part] = text
}

// Findings logs what is new, and what is no longer so.
func (j *Journal) Findings(found []finding.Finding) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := make(map[string]finding.Finding, len(found))
	for _, f := range found {
		key := f.Key()
		if _, again := now[key]; again {
			continue
		}
		now[key] = f
		if _, known := j.standing[key]; !known {
			j.log.Log(context.Background(), Level(f.Severity), "found", Attrs(f, "remedy", f.Remedy)...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(j.standing)) {
		f := j.standing[key]
		if _, still := now[key]; !still && f.Severity > finding.Note {
			j.log.Info("no longer found", Attrs(f)...)
		}
	}
	j.standing = now
}

// Ready logs when readiness changes. Before the first time ready nothing is logged: that a
// program is not registered yet is no news then, and every other reason is logged as a
// finding, as is one that comes to it later.
func (j *Journal) Ready(ready bool, why, version string, offers []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case ready && !j.ready:
		j.log.Info("ready", "resource", offers, "version", version)
	case !ready && j.ready:
		j.log.Warn("not ready", "reason", why)
	}
	j.ready = ready
}

// WasReady says what Ready was told last.
func (j *Journal) WasReady() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ready
}

// Attrs are a finding's attributes in a line of the log, and more behind them.
func Attrs(f finding.Finding, more ...any) []any {
	all := []any{"finding", f.ID}
	if f.Resource != "" {
		all = append(all, "resource", f.Resource)
	}
	if f.Device != "" {
		all = append(all, "device", f.Device)
	}
	return append(append(all, "reason", f.Reason()), more...)
}

// Level is how a finding is logged.
func Level(s finding.Severity) slog.Level {
	switch s {
	case finding.Error:
		return slog.LevelError
	case finding.Warning:
		return slog.LevelWarn
	case finding.Note:
	}
	return slog.LevelInfo
}
