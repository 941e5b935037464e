package dra_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
)

var (
	seedFlag = flag.Uint64("seed", 0, "seed of the random test; 0 takes $SEED, or a new one")
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func addr(t *testing.T, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

func seed(t *testing.T) uint64 {
	t.Helper()
	s := *seedFlag
	if text := os.Getenv("SEED"); s == 0 && text != "" {
		var err error
		s, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("SEED=%d", s)
	return s
}

// node lays out a machine and returns a source that looks at it as the driver does.
func node(t *testing.T, p sim.Platform) (*sim.Node, host.Source) {
	t.Helper()
	n, _ := simtest.Node(t, p)
	src := simtest.Source(t, n)
	src.Wanted, src.PCIeLink = dra.Wants, dra.Wants
	return n, src
}

// machines are all presets, and those of them in which more is bound to VFIO.
func machines(t *testing.T) map[string]host.Source {
	t.Helper()
	all := map[string]host.Source{}
	for _, p := range append(sim.Platforms(), sim.Adapters()) {
		_, all[p.Name] = node(t, p)
	}
	for _, name := range []string{"hgx-h100", "gb300"} {
		p, err := sim.PlatformByName(name)
		must(t, err)
		n, src := node(t, p)
		for _, f := range n.Functions() {
			if f.Class.Sub() == 0x0207 {
				must(t, n.Unbind(f.Address()), n.Bind(f.Address(), "vfio-pci"))
			}
		}
		all[name+"-nics"] = src
	}
	return all
}

// offers are all devices of an inventory, without taints.
func offers(i *dra.Inventory) []dra.Offer {
	var all []dra.Offer
	for k := range i.Devices {
		all = append(all, dra.Offer{Device: &i.Devices[k]})
	}
	return all
}

// identities by name.
func identity(kind string) host.Identity {
	return map[string]host.Identity{
		"gpu":      {Vendor: 0x10de, Device: 0x2330, Class: 0x030200, SubVendor: 0x10de, SubDevice: 0x16c1},
		"vga":      {Vendor: 0x10de, Device: 0x2204, Class: 0x030000, SubVendor: 0x10de, SubDevice: 0x1454},
		"nvswitch": {Vendor: 0x10de, Device: 0x22a3, Class: 0x068000, SubVendor: 0x10de, SubDevice: 0x1796},
		"ethernet": {Vendor: 0x8086, Device: 0x1592, Class: 0x020000, SubVendor: 0x8086, SubDevice: 0x0002},
		"ib":       {Vendor: 0x15b3, Device: 0x1021, Class: 0x020700, SubVendor: 0x15b3, SubDevice: 0x0041},
		"audio":    {Vendor: 0x10de, Device: 0x1aef, Class: 0x040300, SubVendor: 0x10de, SubDevice: 0x1454},
		"bridge":   {Vendor: 0x1000, Device: 0xc030, Class: 0x060400, SubVendor: 0x1000},
		"amd":      {Vendor: 0x1002, Device: 0x74a1, Class: 0x030200, SubVendor: 0x1002},
	}[kind]
}

// ready is a function that nothing is the matter with: on vfio-pci, alone in its group.
func ready(t *testing.T, kind, address string) host.Function {
	t.Helper()
	a := addr(t, address)
	f := host.Function{
		Path:     pci.Path{Root: fmt.Sprintf("pci%04x:%02x", a.Domain, a.Bus-1), Address: a},
		Identity: identity(kind), NUMA: 1, Driver: "vfio-pci", Known: true,
		Group: &host.IOMMUGroup{Number: strconv.Itoa(int(a.Bus)), Members: []host.Member{{Address: a}}},
		Cdev:  &host.Cdev{Name: fmt.Sprintf("vfio%d", a.Bus), Major: 511, Minor: uint32(a.Bus)},
	}
	f.Bridges = []pci.Address{{Domain: a.Domain, Bus: a.Bus - 1, Device: 1}}
	return f
}

// take makes an inventory of functions.
func take(functions ...host.Function) *dra.Inventory {
	return dra.Take(&host.Snapshot{Functions: functions})
}

// texts are findings in words.
func texts(all []finding.Finding) []string {
	var list []string
	for _, f := range all {
		list = append(list, f.Device+" "+f.String())
	}
	return list
}

// all is why functions are no devices, whoever has them.
func all(i *dra.Inventory) []finding.Finding {
	f := slices.Concat(i.Findings, i.Hosts)
	if len(i.Hosts) > 0 {
		finding.Sort(f)
	}
	return f
}
