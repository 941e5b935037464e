package kernel

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/kernel/facts"
	"kata-device-plugin/test/kernel/wire"
)

// Replay lays the machine of a kernel's tables out with the simulator, makes it take the same steps,
// and compares what the two show after each. It returns the differences by the table's name.
func Replay(tables []wire.Line) (all map[string][]string, err error) {
	if len(tables) == 0 {
		return nil, errors.New("compare the simulator with the kernel: there is no table")
	}
	dir, err := sim.TempDir()
	if err != nil {
		return nil, err
	}
	r, err := swept(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	defer func() { err = errors.Join(err, r.close()) }()
	// With another umask the simulator has to correct modes, which a watcher is told.
	defer unix.Umask(unix.Umask(0o022))
	platform, err := layout(tables[0].Table)
	if err != nil {
		return nil, fmt.Errorf("read the kernel's first table: %w", err)
	}
	n, err := sim.New(dir, platform)
	if err != nil {
		return nil, err
	}
	told, err := facts.NewEvents(dir)
	if err != nil {
		return nil, err
	}
	defer told.Close()
	_, minor := n.DevNumber(1)
	numbered := minor != 0
	all = map[string][]string{}
	for i, t := range tables {
		if i > 0 {
			for _, s := range t.Steps {
				if err := step(n, s, t.Table); err != nil {
					return all, fmt.Errorf("before table %q: %w", t.Name, err)
				}
			}
		}
		events, err := told.Take()
		if err != nil {
			return all, err
		}
		all[t.Name] = differences(t.Table, facts.Take(dir), numbered)
		if i > 0 && !slices.Equal(t.Events, events) {
			all[t.Name] = append(all[t.Name], fmt.Sprintf("a watcher of the kernel's nodes is told %q, one of the simulator's %q", t.Events, events))
		}
	}
	return all, nil
}

// layout reads the functions of a table.
func layout(t facts.Table) (sim.Platform, error) {
	p := sim.Platform{Name: "a real kernel's"}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		if path.Dir(name) != "sys/bus/pci/devices" {
			continue
		}
		f, err := function(t, name)
		if err != nil {
			return p, err
		}
		p.Functions = append(p.Functions, f)
	}
	return p, nil
}

// function reads one function, at its entry of the bus.
func function(t facts.Table, at string) (sim.Function, error) {
	text := func(name string) string {
		s, err := strconv.Unquote(t[at+"/"+name])
		if err != nil {
			return "" // an error, such as !ENOENT
		}
		return strings.TrimSuffix(s, "\n")
	}
	number := func(name string) int {
		n, _ := strconv.Atoi(text(name)) // 0 for what is not there
		return n
	}
	base := func(name string) string {
		target, ok := strings.CutPrefix(t[at+"/"+name], "-> ")
		if !ok {
			return ""
		}
		return path.Base(target)
	}
	f := sim.Function{
		Path: strings.TrimPrefix(t[at], "-> ../../../devices/"),
		NUMA: number("numa_node"), Group: base("iommu_group"), Driver: base("driver"),
		TotalVFs: number("sriov_totalvfs"), VFOffset: number("sriov_offset"), VFStride: number("sriov_stride"),
	}
	if f.LinkSpeed = text("max_link_speed"); f.LinkSpeed != "" {
		f.LinkWidth = number("max_link_width")
	}
	var errs []error
	id := func(name string) pci.ID {
		v, err := pci.ParseID(text(name))
		errs = append(errs, err)
		return v
	}
	f.Vendor, f.Device, f.SubVendor, f.SubDevice = id("vendor"), id("device"), id("subsystem_vendor"), id("subsystem_device")
	var err error
	f.Class, err = pci.ParseClass(text("class"))
	errs = append(errs, err)
	f.Revision, err = pci.ParseRevision(text("revision"))
	errs = append(errs, err)
	if f.TotalVFs > 0 {
		f.VFDevice, err = pci.ParseID("0x" + text("sriov_vf_device"))
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return f, fmt.Errorf("read %s: %w", at, err)
	}
	return f, nil
}

// step has the simulator do what was done to the kernel. What comes is as the kernel's table has it.
func step(n *sim.Node, s wire.Step, after facts.Table) error {
	switch s.Do {
	case wire.AddMediated:
		_, err := n.AddMdev(s.Address)
		return err
	case wire.LoseMediated:
		return n.RemoveOther(s.Address)
	}
	a, err := pci.ParseAddress(s.Address)
	if err != nil {
		return err
	}
	switch s.Do {
	case wire.Bind:
		return n.Bind(a, s.Driver)
	case wire.BindNoIOMMU:
		return n.AddNoIOMMUWithoutCdev(a)
	case wire.Unbind:
		return n.Unbind(a)
	case wire.Hold:
		return n.UnbindBusy(a)
	case wire.HoldRemoved:
		return n.RemoveBusy(a)
	case wire.Release:
		return n.Release(a)
	case wire.VFs:
		return n.SetVFs(a, s.Count, s.Driver)
	case wire.Remove:
		return n.Remove(a)
	case wire.Add:
		f, err := function(after, "sys/bus/pci/devices/"+s.Address)
		if err != nil {
			return err
		}
		return n.Add(f)
	}
	return fmt.Errorf("step %q: %w", s.Do, errors.ErrUnsupported)
}

// differences compares two tables, entry by entry. Without privilege the simulator has no numbers of
// devices.
func differences(kernel, simulator facts.Table, numbered bool) []string {
	k, s := major(kernel, numbered), major(simulator, numbered)
	names := maps.Clone(kernel)
	maps.Copy(names, simulator)
	var all []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if facts.IsKept(name) {
			continue
		}
		a, inKernel := kernel[name]
		b, inSimulator := simulator[name]
		a, b = k(a), s(b)
		switch {
		case !inKernel:
			all = append(all, fmt.Sprintf("/%s: the kernel has nothing, the simulator has %s", name, b))
		case !inSimulator:
			all = append(all, fmt.Sprintf("/%s: the kernel has %s, the simulator has nothing", name, a))
		case a != b:
			all = append(all, fmt.Sprintf("/%s: the kernel has %s, the simulator has %s", name, a, b))
		}
	}
	return all
}

// major returns a function that puts M in the place of the dynamic major of VFIO's devices, and, where
// numbers and owners are not to be compared, letters in the place of all of them.
func major(t facts.Table, numbered bool) func(string) string {
	anybody := regexp.MustCompile(`^(0[0-7]+) \d+:\d+`) // as facts writes a node
	owner := func(s string) string {
		if numbered {
			return s
		}
		return anybody.ReplaceAllString(s, "${1} u:g")
	}
	put := "${1}M:${2}"
	if !numbered {
		put = "${1}M:m"
	}
	number := regexp.MustCompile(`^"(\d+):\d+\\n"$`)
	for name, value := range t {
		if m := number.FindStringSubmatch(value); m != nil && path.Base(name) == "dev" {
			mine := regexp.MustCompile(`(^"| )` + m[1] + `:(\d+)`)
			return func(s string) string { return mine.ReplaceAllString(owner(s), put) }
		}
	}
	return owner
}
