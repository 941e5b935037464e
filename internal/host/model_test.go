package host_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the model test; 0 takes $SEED, or a new one")

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

// events takes out of a snapshot what sends no event, so that a glance may have it
// older than a look: the driver of a function that is not on VFIO, also as a companion,
// the number of VFs, and the group that VFIO invented for a function without an IOMMU,
// when that function is unbound already but still in use. Everything else has to be
// the same.
func events(s *host.Snapshot) *host.Snapshot {
	masked := &host.Snapshot{Strays: s.Strays, Unread: s.Unread}
	for _, f := range s.Functions {
		masked.Functions = append(masked.Functions, silent(f))
	}
	return masked
}

func silent(f host.Function) host.Function {
	f.VFs = nil
	if f.Cdev == nil {
		f.Driver = ""
	}
	if f.Address.String() == noIOMMU && f.Cdev == nil {
		f.Group = nil
	}
	if f.Group != nil {
		g := *f.Group
		g.Members = slices.Clone(g.Members)
		for i := range g.Members {
			if !g.Members[i].VFIO {
				g.Members[i].Driver = ""
			}
		}
		f.Group = &g
	}
	return f
}

// noIOMMU is the function of the model that has no IOMMU group.
const noIOMMU = "0000:61:00.0"

// model is a node, what was seen of it, and what was done to it.
type model struct {
	*rig
	t      *testing.T
	rand   *rand.Rand
	all    []sim.Function // as they are added
	others []string       // mdevs and platform devices
	broken map[[2]string]bool
	count  int
	log    []string
}

// modelFunctions have groups that no new group is given the number of.
func modelFunctions() []sim.Function {
	pf := sriov()
	pf.Driver, pf.TotalVFs = "", 3
	pf.Group = "107"
	nic := gpu("0000:e1:00.0", "103", "mlx5_core")
	nic.Vendor, nic.Class = 0x15b3, 0x020700
	nvs1, nvs2 := gpu("0000:71:00.0", "120", "vfio-pci"), gpu("0000:81:00.0", "120", "vfio-pci")
	nvs1.Class, nvs2.Class = 0x068000, 0x068000
	vmd := gpu("10000:01:00.0", "121", "vfio-pci")
	vmd.Path = "pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/10000:01:00.0"
	return []sim.Function{
		pf, audio("0000:41:00.1", "107", "snd_hda_intel"), gpu(gpuB, "108", "vfio-pci"), gpu(noIOMMU, "", ""),
		nvs1, nvs2, nic, vmd, gpu("0008:06:00.0", "122", "nvgrace_gpu_vfio_pci"),
	}
}

// TestModel does to a node whatever comes, one thing after another, and holds a chain
// of glances, as the agent takes them, against looks that remember nothing.
func TestModel(t *testing.T) {
	steps := 1000
	s := seed(t)
	m := &model{
		rig: newRig(t, modelFunctions()...), t: t, rand: rand.New(rand.NewPCG(s, 0)),
		all: modelFunctions(), broken: map[[2]string]bool{},
	}
	m.src.PCIeLink = nvidia
	done := map[string]int{}
	seen := m.src.Look(nil)
	for step := range steps {
		name, do := m.action()
		err := do()
		if err == nil {
			done[name]++
		}
		m.log = append(m.log, fmt.Sprintf("%d: %s: %v", step, name, err))
		if err != nil && !expectedErr(err) {
			t.Fatalf("SEED=%d, step %d: %s: %v", s, step, name, err)
		}
		seen = m.check(seen)
		if t.Failed() {
			t.Fatalf("SEED=%d, after\n%s", s, m.log[max(0, len(m.log)-12):])
		}
	}
	for _, name := range m.actions() {
		if done[name] == 0 {
			t.Errorf("SEED=%d: %s was never done", s, name)
		}
	}
}

// expectedErr says whether the kernel would have refused.
func expectedErr(err error) bool {
	for _, e := range []error{unix.EBUSY, unix.ENODEV, unix.EINVAL, unix.ENOENT, unix.EEXIST, unix.ERANGE} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// check looks and glances, compares, and returns what the next glance is based on.
func (m *model) check(seen *host.Snapshot) *host.Snapshot {
	m.t.Helper()
	glance := m.src.Glance(seen)
	fresh, kept := m.src.Look(nil), m.src.Look(glance)
	if len(m.broken) == 0 {
		same(m.t, "glance", events(glance), events(fresh))
		same(m.t, "look", kept, fresh)
		if glance.Torn() != fresh.Torn() || kept.Torn() != fresh.Torn() || fresh.Partial() {
			m.t.Errorf("torn %v, %v, %v; partial %v", glance.Torn(), kept.Torn(), fresh.Torn(), fresh.Partial())
		}
	} else {
		m.compareRest(glance, fresh, silent)
		m.compareRest(kept, fresh, func(f host.Function) host.Function { return f })
	}
	for _, f := range m.Functions() {
		id := host.Identity{Vendor: f.Vendor, Class: f.Class}
		for _, s := range []*host.Snapshot{glance, fresh, kept} {
			if _, ok := s.Function(f.Address()); !ok && nvidia(id) {
				m.t.Errorf("%s is lost", f.Address())
			}
		}
	}
	if m.rand.IntN(8) == 0 {
		return kept
	}
	return glance
}

// compareRest compares what is readable. What is not has to be known for it, unless
// nothing made a glance read it.
func (m *model) compareRest(got, fresh *host.Snapshot, mask func(host.Function) host.Function) {
	m.t.Helper()
	same(m.t, "strays", got.Strays, fresh.Strays)
	for _, want := range fresh.Functions {
		f, ok := got.Function(want.Address)
		switch {
		case want.Err != nil && !ok && nvidia(want.Identity) && want.Known:
			m.t.Errorf("%s is lost", want.Address)
		case want.Err == nil && !ok:
			m.t.Errorf("%s is missing", want.Address)
		case want.Err == nil:
			if diff := cmp.Diff(mask(want), mask(*f), options()); diff != "" {
				m.t.Errorf("%s (-want +got):\n%s", want.Address, diff)
			}
		}
	}
	for _, f := range got.Functions {
		if _, ok := fresh.Function(f.Address); !ok {
			m.t.Errorf("%s is not there", f.Address)
		}
	}
}

func (m *model) actions() []string {
	return []string{
		"bind", "unbind", "rebind", "bind without cdev", "bind VFs' way", "unbind busy", "release", "swap", "remove", "remove busy",
		"add", "set VFs", "no IOMMU", "place", "remove placed", "remove node", "mdev", "platform", "remove other", "hide", "show",
		"break", "restore",
	}
}

// one chooses one.
func one[T any](m *model, list []T) T { return list[m.rand.IntN(len(list))] }

func (m *model) address() pci.Address {
	var list []pci.Address
	for _, f := range m.Functions() {
		if f.Class.Sub() != 0x0604 {
			list = append(list, f.Address())
		}
	}
	if len(list) == 0 {
		return pci.Address{}
	}
	return one(m, list)
}

// action chooses what is done next.
func (m *model) action() (name string, do func() error) {
	name = one(m, m.actions())
	a, b := m.address(), m.address()
	m.count++
	odd := []string{"vfio05", "vfio+5", "vfiox", "vfio", "noiommu-vfio9", "vfio77", "vfio78", "readme"}
	return name, map[string]func() error{
		"bind":              func() error { return m.Bind(a, one(m, []string{"vfio-pci", "vfio-pci", "nvidia", "pci-stub"})) },
		"unbind":            func() error { return m.Unbind(a) },
		"rebind":            func() error { return errors.Join(m.Unbind(a), m.Bind(a, "vfio-pci")) },
		"bind without cdev": func() error { return m.BindWithoutCdev(a, "vfio-pci") },
		"bind VFs' way":     func() error { return m.BindVFIO(a, "nvidia") },
		"unbind busy":       func() error { return m.UnbindBusy(a) },
		"release":           func() error { return m.releaseAll() },
		"swap": func() error {
			return errors.Join(m.Unbind(a), m.Unbind(b), m.Bind(b, "vfio-pci"), m.Bind(a, "vfio-pci"))
		},
		"remove":      func() error { return m.Remove(a) },
		"remove busy": func() error { return m.RemoveBusy(a) },
		"add":         func() error { return m.Add(one(m, m.all)) },
		"set VFs": func() error {
			m.try(m.Add(m.all[0]), m.Bind(addr(m.t, gpuA), "vfio-pci"))
			return m.SetVFs(addr(m.t, gpuA), m.rand.IntN(4), one(m, []string{"", "vfio-pci", "nvidia"}))
		},
		"no IOMMU": func() error {
			m.try(m.Add(m.all[3]), m.Unbind(addr(m.t, noIOMMU)))
			return m.AddNoIOMMU(addr(m.t, noIOMMU))
		},
		"place":         func() error { return m.place(one(m, odd)) },
		"remove placed": func() error { return m.RemovePlaced(one(m, odd)) },
		"remove node": func() error {
			number, _ := m.Cdev(a)
			return m.RemovePlaced("vfio" + strconv.Itoa(number))
		},
		"mdev": func() error {
			if len(m.others) > 3 {
				return unix.EBUSY
			}
			other := fmt.Sprintf("83b8f4f2-509f-382f-3c1e-%012d", m.count)
			m.others = append(m.others, other)
			_, err := m.AddMdev(other)
			return err
		},
		"platform": func() error {
			if len(m.others) > 3 {
				return unix.EBUSY
			}
			other := fmt.Sprintf("%x.dma", m.count)
			m.others = append(m.others, other)
			_, err := m.AddPlatformDevice(other)
			return err
		},
		"remove other": m.removeOther,
		"hide":         m.HideVFIO,
		"show":         m.ShowVFIO,
		"break":        func() error { return m.breakOne(a) },
		"restore":      m.restoreAll,
	}[name]
}

// try takes what the kernel may refuse.
func (m *model) try(errs ...error) {
	m.t.Helper()
	for _, err := range errs {
		if err != nil && !expectedErr(err) {
			m.t.Fatal(err)
		}
	}
}

func (m *model) releaseAll() error {
	released := error(unix.EINVAL)
	for _, f := range m.Functions() {
		switch err := m.Release(f.Address()); {
		case err == nil:
			released = nil
		case !expectedErr(err):
			return err
		}
	}
	return released
}

func (m *model) place(name string) error {
	switch m.rand.IntN(3) {
	case 0:
		return m.PlaceFile(name, "x")
	case 1:
		return m.PlaceDir(name)
	default:
		major, minor := m.DevNumber(m.rand.IntN(4))
		return m.PlaceNode(name, major, minor)
	}
}

func (m *model) removeOther() error {
	if len(m.others) == 0 {
		return unix.ENODEV
	}
	other := m.others[0]
	m.others = m.others[1:]
	return m.RemoveOther(other)
}

func (m *model) breakOne(a pci.Address) error {
	if m.rand.IntN(2) == 0 {
		return unix.EINVAL // be whole most of the time
	}
	name := one(m, []string{"vendor", "class", "revision", "numa_node", "driver", "physfn", "virtfn0", "iommu_group"})
	if number, ok := m.Cdev(a); ok && m.rand.IntN(4) == 0 {
		name = fmt.Sprintf("vfio-dev/vfio%d/dev", number)
	}
	err := m.BreakAttribute(a, name)
	if err == nil {
		m.broken[[2]string{a.String(), name}] = true
	}
	return err
}

// restoreAll mends everything. What has gone in the meantime went broken.
func (m *model) restoreAll() error {
	for b := range m.broken {
		if err := m.RestoreAttribute(addr(m.t, b[0]), b[1]); err != nil && !expectedErr(err) {
			return err
		}
	}
	clear(m.broken)
	return nil
}
