package declare_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// slots is a machine of which any slot may hold anything.
type slots struct {
	rand *rand.Rand
	all  []*host.Function // nil where there is nothing
}

// change does something to one slot.
func (s *slots) change(t *testing.T) string {
	t.Helper()
	i := s.rand.IntN(len(s.all))
	address := fmt.Sprintf("%04x:41:00.0", i)
	fresh := ready(t, address)
	name, change := s.choose(t, &fresh)
	if name == "removed" {
		s.all[i] = nil
		return address + " removed"
	}
	change()
	s.all[i] = &fresh
	return address + " " + name
}

func (s *slots) choose(t *testing.T, f *host.Function) (string, func()) {
	t.Helper()
	broken := errors.New("read x: I/O")
	all := map[string]func(){
		"ready": func() {}, "removed": func() {},
		"nvswitch":         func() { f.Class = 0x068000 },
		"nvswitch unbound": func() { f.Class, f.Cdev, f.Driver = 0x068000, nil, "" },
		"audio":            func() { f.Class = 0x040300 },
		"unbound":          func() { f.Cdev, f.Driver = nil, "" },
		"on nvidia":        func() { f.Cdev, f.Driver = nil, "nvidia" },
		"pending":          func() { f.Cdev.State = host.CdevPending },
		"other number":     func() { f.Cdev.State = host.CdevOtherNumber },
		"broken":           func() { f.Err = broken },
		"broken, unbound":  func() { f.Err, f.Cdev, f.Driver = broken, nil, "" },
		"never read":       func() { *f = host.Function{Path: f.Path, Err: broken} },
		"VF":               func() { a := addr(t, "0000:40:00.0"); f.PhysFn = &a },
		"VFs":              func() { f.VFs = make([]pci.Address, 2) },
		"companion": func() {
			f.Group.Members = append(f.Group.Members, host.Member{Address: addr(t, "0000:41:00.1"), Driver: "snd_hda_intel"})
		},
	}
	names := slices.Sorted(maps.Keys(all))
	name := names[s.rand.IntN(len(names))]
	return name, all[name]
}

func (s *slots) snapshot() *host.Snapshot {
	var snap host.Snapshot
	for _, f := range s.all {
		if f != nil {
			snap.Functions = append(snap.Functions, *f)
		}
	}
	return &snap
}

// TestModel changes a machine at random and sees that what was announced stays
// announced, that it is healthy exactly when it is there and fit, and that there is a
// reason otherwise. SEED repeats a run.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	if text := os.Getenv("SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("SEED=%d", seed)
	s := &slots{rand: rand.New(rand.NewPCG(seed, 0)), all: make([]*host.Function, 6)}
	table := declare.Passthrough()
	var announced []declare.Resource
	seen := map[[2]string]bool{} // resource and ID, ever
	reasons := map[string]bool{}
	for step := range 1000 {
		what := s.change(t)
		snap := s.snapshot()
		now := table.Declare(snap, declare.Past{})
		next := now.After(announced)
		fit := map[[2]string]int{} // declared now, with the number of faults
		for _, r := range now.Resources {
			for _, d := range r.Devices {
				fit[[2]string{r.Name, d.ID}] = len(d.Faults)
				seen[[2]string{r.Name, d.ID}] = true
			}
		}
		listed := map[[2]string]bool{}
		for _, r := range next.Resources {
			for i, d := range r.Devices {
				key := [2]string{r.Name, d.ID}
				if listed[key] || i > 0 && r.Devices[i-1].Function.Address.Compare(d.Function.Address) >= 0 {
					t.Errorf("%v is listed twice, or out of order", key)
				}
				listed[key] = true
				n, declared := fit[key]
				if d.Present != declared || declared && len(d.Faults) != n || !declared && len(d.Faults) != 1 || d.ID != d.Function.Address.String() {
					t.Errorf("%v: declared %v, %+v", key, declared, d)
				}
				for _, f := range d.Faults {
					reasons[f.ID] = true
					if f.Resource != r.Name || f.Device != d.ID || len(f.Evidence) == 0 {
						t.Errorf("%v: a reason about something else: %+v", key, f)
					}
				}
			}
		}
		for key := range seen {
			if !listed[key] {
				t.Errorf("%v is withdrawn", key)
			}
		}
		explained(t, snap, next)
		if t.Failed() {
			t.Fatalf("SEED=%d, step %d: %s", seed, step, what)
		}
		announced = next.Resources
	}
	for _, k := range []finding.Kind{
		finding.Gone(), finding.NotYet(), finding.OtherNumber(), finding.Unreadable(), finding.VirtualFunction(), finding.HasVFs(),
		finding.NotViable(), finding.ChangedClass(),
	} {
		if !reasons[k.ID] {
			t.Errorf("SEED=%d: no device was ever unhealthy for %s", seed, k.ID)
		}
	}
}

// explained sees that each candidate is a device, or has a reason why not.
func explained(t *testing.T, snap *host.Snapshot, d declare.Declaration) {
	t.Helper()
	for i := range snap.Functions {
		f := &snap.Functions[i]
		id := f.Address.String()
		if !declare.Passthrough().Wants(f.Identity) && f.Known {
			continue
		}
		ok := slices.ContainsFunc(d.Findings, func(x finding.Finding) bool { return x.Device == id })
		for _, r := range d.Resources {
			ok = ok || slices.ContainsFunc(r.Devices, func(x declare.Device) bool { return x.ID == id })
		}
		if !ok {
			t.Errorf("%s is neither declared nor explained: %+v", id, f)
		}
		if f.Err != nil && !slices.ContainsFunc(allFindings(d), func(x finding.Finding) bool {
			return x.Device == id && x.ID == finding.Unreadable().ID
		}) {
			t.Errorf("nobody says that %s could not be read", id)
		}
	}
}

func allFindings(d declare.Declaration) []finding.Finding {
	all := slices.Clone(d.Findings)
	for _, r := range d.Resources {
		for _, dev := range r.Devices {
			all = append(all, dev.Faults...)
		}
	}
	return all
}
