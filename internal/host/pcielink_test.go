package host_test

import (
	"fmt"
	"testing"

	"kata-device-plugin/internal/host"
)

// TestPCIeLink has what the kernel says of a link, and what is made of it.
func TestPCIeLink(t *testing.T) {
	known := host.PCIeLink{MTs: 32000, Lanes: 16}
	for _, tt := range []struct {
		speed, width string // "" for no file
		want         host.PCIeLink
	}{
		{"32.0 GT/s PCIe\n", "16\n", known},
		{"2.5 GT/s PCIe\n", "1\n", host.PCIeLink{MTs: 2500, Lanes: 1}},
		{"5.0 GT/s PCIe\n", "2\n", host.PCIeLink{MTs: 5000, Lanes: 2}},
		{"8.0 GT/s PCIe\n", "4\n", host.PCIeLink{MTs: 8000, Lanes: 4}},
		{"16.0 GT/s PCIe\n", "8\n", host.PCIeLink{MTs: 16000, Lanes: 8}},
		{"64.0 GT/s PCIe\n", "12\n", host.PCIeLink{MTs: 64000, Lanes: 12}},
		{"128 GT/s PCIe\n", "32\n", host.PCIeLink{MTs: 128000, Lanes: 32}},
		{"64.0 GT/s PCIe\n", "63\n", host.PCIeLink{}}, // asleep
		{"Unknown\n", "255\n", host.PCIeLink{}},
		{"Unknown speed\n", "16\n", host.PCIeLink{}},
		{"32.0 GT/s PCIe\n", "0\n", host.PCIeLink{}},
		{"32.0 GT/s PCIe\n", "3\n", host.PCIeLink{}},
		{"32.0 GT/s PCIe\n", "x16\n", host.PCIeLink{}},
		{"32.0 GT/s\n", "16\n", host.PCIeLink{}},
		{"32.00 GT/s PCIe\n", "16\n", host.PCIeLink{}},
		{"-32.0 GT/s PCIe\n", "16\n", host.PCIeLink{}},
		{" GT/s PCIe\n", "16\n", host.PCIeLink{}},
		{"66 MHz PCI\n", "16\n", host.PCIeLink{}},
		{"\n", "\n", host.PCIeLink{}},
		{"", "16\n", host.PCIeLink{}},
		{"32.0 GT/s PCIe\n", "", host.PCIeLink{}},
	} {
		t.Run(fmt.Sprintf("%q %q", tt.speed, tt.width), func(t *testing.T) {
			r := newRig(t, gpu(gpuA, "7", "vfio-pci"))
			r.src.PCIeLink = nvidia
			a := addr(t, gpuA)
			for name, text := range map[string]string{"max_link_speed": tt.speed, "max_link_width": tt.width} {
				if text == "" {
					must(t, r.RemoveAttribute(a, name))
				} else {
					must(t, r.SetAttribute(a, name, text))
				}
			}
			s := r.src.Look(nil)
			again, ok := r.src.Again(s, a)
			for what, f := range map[string]*host.Function{
				"look": function(t, s, gpuA), "glance": function(t, r.src.Glance(s), gpuA), "again": &again,
			} {
				if !ok || f.PCIeLink != tt.want || f.Err != nil || !f.Known {
					t.Errorf("%s: %+v, error %v, known %v", what, f.PCIeLink, f.Err, f.Known)
				}
			}
			// Once it is told, it stays.
			must(t, r.SetAttribute(a, "max_link_speed", "32.0 GT/s PCIe\n"), r.SetAttribute(a, "max_link_width", "16\n"))
			want := tt.want
			if want == (host.PCIeLink{}) {
				want = known
			}
			if got := function(t, r.src.Look(s), gpuA).PCIeLink; got != want {
				t.Errorf("awake: %+v, want %+v", got, want)
			}
		})
	}
}

// TestPCIeLinkStays: a link that was known is known whatever becomes of the function, until
// another one is in its slot.
func TestPCIeLinkStays(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"))
	r.src.PCIeLink = nvidia
	a, known := addr(t, gpuA), host.PCIeLink{MTs: 32000, Lanes: 16}
	s := r.src.Look(nil)
	check := func(what string, want host.PCIeLink) {
		t.Helper()
		for kind, next := range map[string]*host.Snapshot{"glance": r.src.Glance(s), "look": r.src.Look(s)} {
			if got := function(t, next, gpuA).PCIeLink; got != want {
				t.Errorf("%s, %s: %+v", what, kind, got)
			}
			s = next
		}
	}
	check("as it was", known)
	must(t, r.SetAttribute(a, "max_link_speed", "Unknown\n"), r.SetAttribute(a, "max_link_width", "255\n"))
	check("asleep", known)
	must(t, r.Unbind(a))
	check("unbound", known)
	must(t, r.Bind(a, "vfio-pci"))
	check("bound again", known)
	must(t, r.BreakAttribute(a, "max_link_speed"), r.BreakAttribute(a, "vendor"))
	check("unreadable", known)
	if got := function(t, r.src.Look(nil), gpuA); got.PCIeLink != (host.PCIeLink{}) || got.Err == nil || got.Known {
		t.Errorf("a first look at what cannot be read: %+v", got)
	}
	must(t, r.RestoreAttribute(a, "max_link_speed"), r.RestoreAttribute(a, "vendor"))

	// Another board, which the slot cannot be asked about now.
	must(t, r.SetAttribute(a, "device", "0x2335\n"))
	s = r.src.Look(s)
	check("exchanged", host.PCIeLink{})
}

// TestPCIeLinkUnasked: nobody who does not ask reads a link.
func TestPCIeLinkUnasked(t *testing.T) {
	r := newRig(t, gpu(gpuA, "7", "vfio-pci"))
	a := addr(t, gpuA)
	must(t, r.BreakAttribute(a, "max_link_speed"), r.BreakAttribute(a, "max_link_width"))
	for what, asks := range map[string]func(host.Identity) bool{
		"nobody": nil, "of another kind": func(host.Identity) bool { return false },
	} {
		r.src.PCIeLink = asks
		if f := function(t, r.src.Look(nil), gpuA); f.Err != nil || f.PCIeLink != (host.PCIeLink{}) {
			t.Errorf("%s: %+v, %v", what, f.PCIeLink, f.Err)
		}
	}
	r.src.PCIeLink = nvidia
	if f := function(t, r.src.Look(nil), gpuA); f.Err == nil {
		t.Error("asked for, and not read")
	}
}
