package agent

import (
	"context"
	"fmt"
	"log/slog"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
)

// report writes one line to the log for each change, and none for what stays.
type report struct {
	log      *slog.Logger
	standing map[string]finding.Finding // findings that were logged, by key
	errors   map[string]string          // the last error of each kind
	wasReady bool
}

func newReport(log *slog.Logger) *report {
	return &report{log: log, standing: map[string]finding.Finding{}, errors: map[string]string{}}
}

// once logs an error when it is another one than the last of its kind.
func (r *report) once(kind string, err error, message string) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != r.errors[kind] {
		r.log.Warn(message, "reason", text)
	}
	r.errors[kind] = text
}

// failing says whether the last error of a kind still stands.
func (r *report) failing(kind string) bool { return r.errors[kind] != "" }

// findings logs what is new, and what is no longer so.
func (r *report) findings(found []finding.Finding) {
	now := make(map[string]finding.Finding, len(found))
	for _, f := range found {
		key := f.Key()
		if _, again := now[key]; again {
			continue
		}
		now[key] = f
		if _, known := r.standing[key]; !known {
			r.log.Log(context.Background(), level(f.Severity), "found", attrs(f, "remedy", f.Remedy)...)
		}
	}
	for key, f := range r.standing {
		if _, still := now[key]; !still && f.Severity > finding.Note {
			r.log.Info("no longer found", attrs(f)...)
		}
	}
	r.standing = now
}

func attrs(f finding.Finding, more ...any) []any {
	all := []any{"finding", f.ID}
	if f.Resource != "" {
		all = append(all, "resource", f.Resource)
	}
	if f.Device != "" {
		all = append(all, "device", f.Device)
	}
	return append(append(all, "reason", f.Reason()), more...)
}

func level(s finding.Severity) slog.Level {
	switch s {
	case finding.Error:
		return slog.LevelError
	case finding.Warning:
		return slog.LevelWarn
	case finding.Note:
	}
	return slog.LevelInfo
}

// devices logs the devices that were announced for the first time, and those that have
// become healthy. Why one is not healthy is a finding.
func (r *report) devices(o *offer, before map[string]*declare.Device) {
	var added []string
	for i := range o.devices {
		d := &o.devices[i]
		was, known := before[d.ID]
		switch {
		case !known:
			added = append(added, d.ID)
		case !was.Healthy() && d.Healthy():
			r.log.Info("healthy", "resource", o.resource, "device", d.ID, "node", d.Node())
		case was.Healthy() && !d.Healthy():
			r.log.Warn("unhealthy", "resource", o.resource, "device", d.ID, "reason", d.Faults[0].String())
		}
	}
	if len(added) > 0 {
		r.log.Info("declared", "resource", o.resource, "device", added)
	}
}

// ready logs when readiness changes, or the reason why it is missing. Before the first
// time ready nothing is logged: that a resource is not registered yet is no news then,
// and every other reason is logged as a finding.
func (r *report) ready(ready bool, why, version string, offers []string) {
	switch {
	case ready && !r.wasReady:
		r.log.Info("ready", "resource", offers, "version", version)
	case !ready && r.wasReady:
		r.log.Warn("not ready", "reason", why)
	}
	r.wasReady = ready
}

// summary says how many of an offer's devices are healthy.
func (o *offer) summary() string {
	healthy := 0
	for i := range o.devices {
		if o.devices[i].Healthy() {
			healthy++
		}
	}
	return fmt.Sprintf("%s %d/%d", o.resource, healthy, len(o.devices))
}
