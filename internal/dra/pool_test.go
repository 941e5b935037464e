package dra_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
)

func preset(t *testing.T, name string) sim.Platform {
	t.Helper()
	p, err := sim.PlatformByName(name)
	must(t, err)
	return p
}

// several are n VFs on VFIO, or other functions.
func several(t *testing.T, n int) []host.Function {
	t.Helper()
	var all []host.Function
	for k := range n {
		f := ready(t, "ethernet", fmt.Sprintf("%04x:%02x:00.0", k/200, 1+k%200))
		f.Group.Number = fmt.Sprint(k)
		all = append(all, f)
	}
	return all
}

func TestSlices(t *testing.T) {
	for n, want := range map[int][]int{0: {0}, 1: {1}, 64: {64}, 65: {64, 1}, 128: {64, 64}, 200: {64, 64, 64, 8}} {
		pool := dra.Pool(offers(take(several(t, n)...)))
		inLimits(t, pool)
		var got []int
		for _, s := range pool.Slices {
			got = append(got, len(s.Devices))
			if s.SharedCounters != nil || s.PerDeviceNodeSelection != nil {
				t.Errorf("%+v", s)
			}
		}
		if !slices.Equal(got, want) || pool.Generation != 0 || pool.AllNodes || pool.NodeSelector != nil {
			t.Errorf("%d devices: slices of %v, want %v", n, got, want)
		}
	}
}

// TestOffers: the pool is the same in whatever order the offers come, and has their taints.
func TestOffers(t *testing.T) {
	i := take(several(t, 100)...)
	all := offers(i)
	taints := []resourceapi.DeviceTaint{{Key: dra.Driver + "/unhealthy", Value: "HST002", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
	all[70].Taints = taints
	want := dra.Pool(all)
	if got := want.Slices[1].Devices[6]; got.Name != i.Devices[70].Name || !slices.Equal(got.Taints, taints) {
		t.Errorf("%+v", got)
	}
	if got := want.Slices[0].Devices[6]; got.Taints != nil {
		t.Errorf("%+v", got)
	}
	given := slices.Clone(all)
	slices.Reverse(given)
	if !apiequality.Semantic.DeepEqual(dra.Pool(given), want) {
		t.Error("the order of the offers makes a difference")
	}
	if given[0].Device != all[99].Device {
		t.Error("the offers were sorted in their place")
	}
	want.Slices[1].Devices[6].Taints[0].Value = "changed"
	if taints[0].Value != "HST002" {
		t.Error("the pool shares the taints with who gave them")
	}
}

// TestResourceName is what Multus looks for.
func TestResourceName(t *testing.T) {
	vf, wide := ready(t, "ethernet", "0000:51:00.0"), ready(t, "ib", "10000:61:00.0")
	vf.PhysFn = &pci.Address{Bus: 0x50}
	wide.Group.Number = "x"
	i := take(ready(t, "gpu", "0000:31:00.0"), ready(t, "ib", "0000:41:00.0"), vf, wide)
	for _, tt := range []struct{ given, nic, vf string }{
		{"", "vfio.katacontainers.io/nic", "vfio.katacontainers.io/vf"},
		{"example.com/fast", "example.com/fast", "example.com/fast"},
		{strings.Repeat("x", 64), strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{strings.Repeat("x", 65), "", ""},
	} {
		all := offers(i)
		for k := range all {
			all[k].ResourceName = tt.given
		}
		pool := dra.Pool(all)
		inLimits(t, pool)
		for k, want := range []string{"", tt.nic, tt.vf, ""} {
			d, got, id := pool.Slices[0].Devices[k], "", ""
			if a := d.Attributes["k8s.cni.cncf.io/resourceName"]; a.StringValue != nil {
				got = *a.StringValue
			}
			if a := d.Attributes["k8s.cni.cncf.io/deviceID"]; a.StringValue != nil {
				id = *a.StringValue
			}
			if got != want || (id != "") != (k == 1 || k == 2) {
				t.Errorf("%q: %s has resourceName %q, deviceID %q", tt.given, d.Name, got, id)
			}
		}
	}
}

// anything is a snapshot with whatever may be in one.
func anything(t *testing.T, r *rand.Rand) *host.Snapshot {
	t.Helper()
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	s := &host.Snapshot{}
	seen := map[pci.Address]bool{}
	groups := map[string]*host.IOMMUGroup{}
	for range r.IntN(300) {
		a := pci.Address{Domain: []uint32{0, 0, 1, 0xffff, 0x10000, 0xffffffff}[r.IntN(6)], Bus: uint8(r.IntN(256)), Device: uint8(r.IntN(32)), Function: uint8(r.IntN(8))}
		if seen[a] || a.Bus == 0 {
			continue
		}
		seen[a] = true
		f := ready(t, one("gpu", "vga", "nvswitch", "ethernet", "ib", "audio", "bridge", "amd"), a.String())
		f.Device += pci.ID(r.IntN(3))
		f.NUMA, f.Driver = host.Node(r.IntN(4)-1), one("vfio-pci", "vfio-pci", "nvgrace_gpu_vfio_pci", "mlx5_core", "")
		f.PCIeLink = host.PCIeLink{MTs: 500 * r.IntN(70), Lanes: r.IntN(17)}
		number := fmt.Sprint(r.IntN(200))
		if groups[number] == nil {
			groups[number] = &host.IOMMUGroup{Number: number}
		}
		f.Group = groups[number]
		f.Group.Members = append(f.Group.Members, host.Member{Address: a, Class: f.Class, Driver: f.Driver, VFIO: f.Driver == "vfio-pci"})
		switch r.IntN(12) {
		case 0:
			f.Group = nil
		case 1:
			f.Cdev = nil
		case 2:
			f.Cdev.State = host.CdevState(r.IntN(6))
		case 3:
			f.PhysFn = &pci.Address{Bus: 1}
		case 4:
			f.VFs = make([]pci.Address, r.IntN(3))
		case 5:
			f.Known, f.Err = r.IntN(2) == 0, fmt.Errorf("read /sys/x: input/output error")
		case 6:
			f.Root, f.Bridges = "", nil
		}
		s.Functions = append(s.Functions, f)
	}
	slices.SortFunc(s.Functions, func(a, b host.Function) int { return a.Address.Compare(b.Address) })
	return s
}

// TestAnything takes the inventories of random snapshots.
func TestAnything(t *testing.T) {
	start := seed(t)
	devices := 0
	for step := range 50 {
		s := anything(t, rand.New(rand.NewPCG(start, uint64(step))))
		i := dra.Take(s)
		pool := dra.Pool(offers(i))
		inLimits(t, pool)
		if !apiequality.Semantic.DeepEqual(pool, dra.Pool(offers(dra.Take(s)))) {
			t.Error("the same snapshot gives another pool")
		}
		said := map[string]bool{}
		for _, f := range all(i) {
			said[f.Device] = true
		}
		groups := map[string]string{}
		last := pci.Address{}
		for k := range i.Devices {
			d := &i.Devices[k]
			devices++
			said[d.Function.Address.String()] = true
			if k > 0 && d.Function.Address.Compare(last) <= 0 {
				t.Errorf("%s is not in order", d.Name)
			}
			last = d.Function.Address
			if other, shared := groups[d.Function.Group.Number]; shared {
				t.Errorf("%s and %s are one group", d.Name, other)
			}
			groups[d.Function.Group.Number] = d.Name
			if !dra.Wants(d.Function.Identity) || !slices.Contains(d.Group, d.Function.Address) || !slices.IsSortedFunc(d.Group, pci.Address.Compare) {
				t.Errorf("%+v", d)
			}
			if found, ok := i.Device(d.Name); !ok || found != d {
				t.Errorf("%s is found as %v", d.Name, found)
			}
		}
		for _, f := range s.Functions { // invariant 9
			if dra.Wants(f.Identity) && !said[f.Address.String()] {
				t.Errorf("%s is neither published nor is anything said of it", f.Address)
			}
		}
		if t.Failed() {
			t.Fatalf("SEED=%d, step %d", start, step)
		}
	}
	if devices < 1000 {
		t.Errorf("only %d devices", devices)
	}
}
