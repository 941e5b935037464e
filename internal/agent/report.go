package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/journal"
)

// report is the journal, with what became of devices.
type report struct {
	*journal.Journal
	log    *slog.Logger
	sick   map[string]bool // devices that were logged as unhealthy
	lasted map[string]bool // faults that were logged because they last
}

func newReport(log *slog.Logger) *report {
	return &report{Journal: journal.New(log), log: log, sick: map[string]bool{}}
}

// findings logs what is new, and what is no longer so. Faults are those of devices that
// have lasted.
func (r *report) findings(found, faults []finding.Finding) {
	r.lasting(faults)
	r.Findings(found)
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
	r.log.Log(context.Background(), journal.Level(max(f.Severity, finding.Warning)), "unhealthy", journal.Attrs(f, "remedy", f.Remedy)...)
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
