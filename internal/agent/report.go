package agent

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
)

// report writes one line to the log for each change, and none for what stays.
type report struct {
	log      *slog.Logger
	standing map[string]finding.Finding // findings that were logged, by key
	sick     map[string]bool            // devices that were logged as unhealthy
	lasted   map[string]bool            // faults that were logged because they last
	errors   map[string]string          // the last error of each kind
	wasReady bool
}

func newReport(log *slog.Logger) *report {
	return &report{log: log, standing: map[string]finding.Finding{}, sick: map[string]bool{}, errors: map[string]string{}}
}

// once logs an error of a part of the work when it is another one than that part's last,
// and when it is over.
func (r *report) once(part string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	switch before := r.errors[part]; {
	case text == before:
	case text == "":
		r.log.Info("restored", "part", part)
	default:
		r.log.Warn("degraded", "part", part, "reason", text)
	}
	r.errors[part] = text
}

// findings logs what is new, and what is no longer so. Faults are those of devices that
// have lasted.
func (r *report) findings(found, faults []finding.Finding) {
	r.lasting(faults)
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
	for _, key := range slices.Sorted(maps.Keys(r.standing)) {
		f := r.standing[key]
		if _, still := now[key]; !still && f.Severity > finding.Note {
			r.log.Info("no longer found", attrs(f)...)
		}
	}
	r.standing = now
}

// lasting logs the faults of devices that the kernel usually only passes through, once
// they have lasted.
func (r *report) lasting(faults []finding.Finding) {
	now := make(map[string]bool, len(faults))
	for _, f := range faults {
		now[f.Key()] = true
		if !r.lasted[f.Key()] {
			r.unhealthy(f)
		}
	}
	r.lasted = now
}

// unhealthy logs the fault of a device.
func (r *report) unhealthy(f finding.Finding) {
	r.sick[f.Resource+"="+f.Device] = true
	r.log.Log(context.Background(), level(max(f.Severity, finding.Warning)), "unhealthy", attrs(f, "remedy", f.Remedy)...)
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

// devices logs what became of an offer's devices: announced for the first time, unhealthy
// for a reason that is new, healthy again. What concerns the offer as a whole is logged
// as a finding of its own, and so is what the kernel only passes through, if it lasts.
func (r *report) devices(o *offer, before map[string]*declare.Device) {
	var added []string
	for i := range o.devices {
		d := &o.devices[i]
		was := before[d.ID]
		if was == nil {
			added = append(added, d.ID)
			was = &declare.Device{}
		}
		if subject := o.resource + "=" + d.ID; d.Healthy() && r.sick[subject] {
			delete(r.sick, subject)
			r.log.Info("healthy", "resource", o.resource, "device", d.ID, "node", d.String())
		}
		for _, f := range d.Faults {
			same := func(g finding.Finding) bool { return g.Key() == f.Key() }
			if told(f) && !slices.ContainsFunc(was.Faults, same) {
				r.unhealthy(f)
			}
		}
	}
	if len(added) > 0 {
		r.log.Info("declared", "resource", o.resource, "device", added)
	}
}

// told says whether a fault is logged with its device.
func told(f finding.Finding) bool { return f.Device != "" && !f.Passing }

// ready logs when readiness changes. Before the first time ready nothing is logged: that a
// resource is not registered yet is no news then, and every other reason is logged as a
// finding, as is one that comes to it later.
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
