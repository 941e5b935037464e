package kernel

import (
	"maps"
	"os"
	"strings"
	"testing"

	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/kernel/facts"
	"kata-device-plugin/test/kernel/wire"
)

// simulated lays a machine out, which stands for the kernel here.
func simulated(t *testing.T, p sim.Platform) (dir string, n *sim.Node) {
	t.Helper()
	dir, err := sim.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if n, err = sim.New(dir, p); err != nil {
		t.Fatal(err)
	}
	return dir, n
}

// twoFunctions are a GPU and one with VFs.
func twoFunctions() (gpu, pf sim.Function) {
	gpu = sim.Function{Path: "pci0000:20/0000:20:01.0/0000:21:00.0", Vendor: 0x10de, Device: 0x2330, SubVendor: 0x10de, SubDevice: 0x16c1,
		Class: 0x030200, Revision: 0xa1, NUMA: 1, Group: "7"}
	pf = gpu
	pf.Path, pf.Group, pf.TotalVFs, pf.VFOffset, pf.VFDevice = "pci0000:20/0000:20:02.0/0000:22:00.0", "8", 4, 16, 0x10ca
	return gpu, pf
}

// recorded are the tables of a simulated machine.
func recorded(t *testing.T) []wire.Line {
	t.Helper()
	gpu, pf := twoFunctions()
	dir, n := simulated(t, sim.Platform{Functions: []sim.Function{gpu, pf}})
	told, err := facts.NewEvents(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	tables := []wire.Line{{Name: "0", Table: facts.Take(dir)}}
	for _, s := range []wire.Step{
		{Do: wire.Bind, Address: "0000:21:00.0", Driver: "vfio-pci"}, {Do: wire.Bind, Address: "0000:22:00.0", Driver: "vfio-pci"},
		{Do: wire.VFs, Address: "0000:22:00.0", Count: 2, Driver: "vfio-pci"}, {Do: wire.VFs, Address: "0000:22:00.0"},
		{Do: wire.Unbind, Address: "0000:22:00.0"}, {Do: wire.Hold, Address: "0000:21:00.0"}, {Do: wire.Release, Address: "0000:21:00.0"},
		{Do: wire.Remove, Address: "0000:21:00.0"}, {Do: wire.Add, Address: "0000:21:00.0"},
	} {
		var err error
		if s.Do == wire.Add {
			err = n.Add(gpu)
		} else {
			err = step(n, s, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		events, err := told.Take()
		if err != nil {
			t.Fatal(err)
		}
		tables = append(tables, wire.Line{Events: events, Name: s.Do + " " + s.Address + " " + pci.ID(s.Count).String(), Table: facts.Take(dir), Steps: []wire.Step{s}})
	}
	return tables
}

// What the simulator itself has shown must come out the same. Of the tables alone it is laid out.
func TestReplay(t *testing.T) {
	tables := recorded(t)
	all, err := Replay(tables)
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		d, compared := all[table.Name]
		if !compared || len(d) > 0 {
			t.Errorf("%s: %v %v", table.Name, compared, d)
		}
	}
}

// Whatever the kernel shows otherwise has to be noticed, each entry of the table.
func TestReplayNotices(t *testing.T) {
	kernel := recorded(t)[2].Table
	for name := range kernel {
		if facts.IsKept(name) {
			continue
		}
		other := maps.Clone(kernel)
		other[name] += "?"
		if d := differences(kernel, other, true); len(d) == 0 || !strings.Contains(strings.Join(d, "\n"), "/"+name+": ") {
			t.Errorf("another %s is not noticed: %v", name, d)
		}
		delete(other, name)
		if len(differences(kernel, other, true)) == 0 || len(differences(other, kernel, true)) == 0 {
			t.Errorf("that %s is missing is not noticed", name)
		}
	}
}

// A line of the configuration that the kernel's own tools drop has to stop the build.
func TestTaken(t *testing.T) {
	var result strings.Builder
	result.WriteString("\n")
	for line := range strings.Lines(config) {
		if strings.HasPrefix(line, "CONFIG_") {
			result.WriteString(line)
		}
	}
	if err := taken(result.String()); err != nil {
		t.Error(err)
	}
	if taken(strings.Replace(result.String(), "CONFIG_VFIO=m\n", "", 1)) == nil {
		t.Error("it goes unnoticed that CONFIG_VFIO was not taken")
	}
	if taken(result.String()+"CONFIG_IPV6=y\n") == nil {
		t.Error("it goes unnoticed that CONFIG_IPV6 is on")
	}
}
