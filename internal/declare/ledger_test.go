package declare_test

import (
	"errors"
	"strings"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
)

const (
	slotA = "0000:41:00.0"
	slotB = "0000:51:00.0"
)

// summary is a declaration in lines: the devices with their faults, then the findings.
func summary(d declare.Declaration) string {
	var lines []string
	for _, r := range d.Resources {
		for _, dev := range r.Devices {
			line := r.Name + " " + dev.ID + " " + map[bool]string{true: "present", false: "absent"}[dev.Present]
			for _, f := range dev.Faults {
				line += "; " + f.Resource + " " + f.String()
			}
			lines = append(lines, line)
		}
	}
	for _, f := range d.Findings {
		lines = append(lines, "finding "+f.Resource+" "+f.Device+" "+f.String())
	}
	return strings.Join(lines, "\n")
}

// TestAfter goes from one machine to another.
func TestAfter(t *testing.T) {
	f := func(slot string, changes ...func(*host.Function)) host.Function {
		f := ready(t, slot)
		for _, change := range changes {
			change(&f)
		}
		return f
	}
	unbound := func(f *host.Function) { f.Cdev, f.Driver = nil, "" }
	onNvidia := func(f *host.Function) { f.Cdev, f.Driver = nil, "nvidia" }
	pending := func(f *host.Function) { f.Cdev.State, f.Cdev.Detail = host.CdevPending, "no node" }
	nvswitch := func(f *host.Function) { f.Class = 0x068000 }
	audio := func(f *host.Function) { f.Class = 0x040300 }
	broken := func(f *host.Function) { f.Err = errors.New("read x: I/O") }
	never := func(f *host.Function) {
		*f = host.Function{Path: f.Path, Err: errors.New("find x: I/O")}
	}
	for _, tt := range []struct {
		name          string
		before, after []host.Function
		want          string
	}{
		{"nothing before", nil, []host.Function{f(slotA)}, "nvidia.com/gpu " + slotA + " present"},
		{"the same", []host.Function{f(slotA)}, []host.Function{f(slotA)}, "nvidia.com/gpu " + slotA + " present"},
		{"one more, before it", []host.Function{f(slotB)}, []host.Function{f(slotA), f(slotB)},
			"nvidia.com/gpu " + slotA + " present\nnvidia.com/gpu " + slotB + " present"},
		{"function gone", []host.Function{f(slotA), f(slotB)}, []host.Function{f(slotB)},
			"nvidia.com/gpu " + slotA + " absent; nvidia.com/gpu HST032 the device has left: /sys/bus/pci/devices/" + slotA + " = none\n" +
				"nvidia.com/gpu " + slotB + " present"},
		{"all gone", []host.Function{f(slotA)}, nil,
			"nvidia.com/gpu " + slotA + " absent; nvidia.com/gpu HST032 the device has left: /sys/bus/pci/devices/" + slotA + " = none"},
		{"unbound", []host.Function{f(slotA)}, []host.Function{f(slotA, unbound)},
			"nvidia.com/gpu " + slotA + " absent; nvidia.com/gpu HST032 the device has left: /sys/bus/pci/devices/" + slotA + "/driver = none"},
		{"on another driver", []host.Function{f(slotA)}, []host.Function{f(slotA, onNvidia)},
			"nvidia.com/gpu " + slotA + " absent; nvidia.com/gpu HST032 the device has left: /sys/bus/pci/devices/" + slotA + "/driver = nvidia"},
		{"unbinding", []host.Function{f(slotA)}, []host.Function{f(slotA, pending)},
			"nvidia.com/gpu " + slotA + " absent; nvidia.com/gpu HST028 the VFIO device is not complete yet: no node\n" +
				"finding   HST033 sysfs lists VFIO devices that the mounted directory does not show: /dev/vfio/devices = without vfio3"},
		{"read error", []host.Function{f(slotA)}, []host.Function{f(slotA, broken)},
			"nvidia.com/gpu " + slotA + " present\nfinding nvidia.com/gpu " + slotA + " HST031 the function could not be read: read x: I/O"},
		{"read error while unbound", []host.Function{f(slotA)}, []host.Function{f(slotA, unbound, broken)},
			"nvidia.com/gpu " + slotA + " absent; nvidia.com/gpu HST032 the device has left: /sys/bus/pci/devices/" + slotA + "/driver = none\n" +
				"finding nvidia.com/gpu " + slotA + " HST031 the function could not be read: read x: I/O"},
		{"unknown function", []host.Function{f(slotA)}, []host.Function{f(slotA, never)},
			"nvidia.com/gpu " + slotA + " absent; nvidia.com/gpu HST031 the function could not be read: find x: I/O"},
		{"another resource", []host.Function{f(slotA)}, []host.Function{f(slotA, nvswitch)},
			"nvidia.com/gpu " + slotA + " absent; nvidia.com/gpu HST035 the function in this slot is no longer of this resource: resource now = nvidia.com/nvswitch\n" +
				"nvidia.com/nvswitch " + slotA + " present"},
		{"another resource, unbound", []host.Function{f(slotA)}, []host.Function{f(slotA, nvswitch, unbound)},
			"nvidia.com/gpu " + slotA + " absent; nvidia.com/gpu HST035 the function in this slot is no longer of this resource: resource now = nvidia.com/nvswitch\n" +
				"finding nvidia.com/nvswitch " + slotA + " HST020 the function has no VFIO character device: /sys/bus/pci/devices/" + slotA + "/driver = none"},
		{"no candidate any more", []host.Function{f(slotA)}, []host.Function{f(slotA, audio)},
			"nvidia.com/gpu " + slotA + " absent; nvidia.com/gpu HST035 the function in this slot is no longer of this resource: /sys/bus/pci/devices/" + slotA + "/class = 0x040300"},
		{"never was a device", []host.Function{f(slotA, unbound)}, []host.Function{f(slotA, unbound)},
			"finding nvidia.com/gpu " + slotA + " HST020 the function has no VFIO character device: /sys/bus/pci/devices/" + slotA + "/driver = none"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := declare.Passthrough()
			before := table.Declare(&host.Snapshot{Functions: tt.before}, declare.Past{})
			was := summary(before)
			now := table.Declare(&host.Snapshot{Functions: tt.after}, declare.Past{})
			is := summary(now)
			after := now.After(before.Resources)
			if got := summary(after); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
			if got := summary(now.After(after.Resources)); got != tt.want {
				t.Errorf("once more\n%s\nwant\n%s", got, tt.want)
			}
			// Back to where it was: healthy again, and forgotten is nothing.
			back := table.Declare(&host.Snapshot{Functions: tt.before}, declare.Past{}).After(after.Resources)
			for _, r := range before.Resources {
				for _, dev := range r.Devices {
					if !strings.Contains("\n"+summary(back)+"\n", "\n"+r.Name+" "+dev.ID+" present\n") {
						t.Errorf("%s does not come back:\n%s", dev.ID, summary(back))
					}
				}
			}
			if summary(before) != was || summary(now) != is {
				t.Errorf("the declarations have changed, to\n%s\nand\n%s", summary(before), summary(now))
			}
		})
	}
}

// TestAbsentFacts keeps the facts of the last look at which the device was there.
func TestAbsentFacts(t *testing.T) {
	f := ready(t, slotA)
	f.NUMA = 3
	before := declare.Passthrough().Declare(&host.Snapshot{Functions: []host.Function{f}}, declare.Past{})
	dev := declare.Passthrough().Declare(&host.Snapshot{}, declare.Past{}).After(before.Resources).Resources[0].Devices[0]
	if dev.Function.NUMA != 3 || dev.Function.Device != 0x2330 || dev.Present || len(dev.Nodes) > 0 || dev.Healthy() {
		t.Errorf("%+v", dev)
	}
}
