package nodestate

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/podresources"
)

const (
	gpu = "nvidia.com/gpu"
	a1  = "0000:41:00.0"
	a2  = "0000:42:00.0"
)

func start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func options() Options { return Options{Bound: time.Minute, Settle: 2 * time.Minute} }

// function is a GPU on VFIO.
func function(t *testing.T, address string) host.Function {
	t.Helper()
	a, err := pci.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	return host.Function{
		Path:     pci.Path{Address: a},
		Identity: host.Identity{Vendor: 0x10de, Device: 0x2330, Class: 0x030200}, Known: true, Driver: "vfio-pci", NUMA: host.NoNode,
		Group: &host.IOMMUGroup{Number: "1", Members: []host.Member{{Address: a}}},
		Cdev:  &host.Cdev{Name: "vfio" + address[5:7]},
	}
}

// facts are those of a node with two GPUs, of which nobody has one.
func facts(t *testing.T, at time.Time) *Facts {
	t.Helper()
	f := &Facts{Rules: []declare.Rules{declare.Passthrough()}}
	f.Hardware.Took(&host.Snapshot{Functions: []host.Function{function(t, a1), function(t, a2)}}, nil, at)
	f.NICRules.Absent(at)
	f.PodUIDs.Absent(at)
	f.Claims.Absent(at)
	f.Pods.Took(nil, nil, at)
	f.Allocatable.Took([]podresources.Device{{Resource: gpu, ID: a1}, {Resource: gpu, ID: a2}}, nil, at)
	f.Record.Took(KubeletRecord{Registered: map[string][]string{gpu: {a1, a2}}}, nil, at)
	f.Sockets.Took(nil, nil, at)
	f.Specs.Took(nil, nil, at)
	f.Locks.Took(nil, nil, at)
	return f
}

// refresh makes all that was said be said again later.
func refresh(f *Facts, at time.Time) {
	f.Hardware.At, f.NICRules.At, f.Pods.At, f.Allocatable.At, f.PodUIDs.At = at, at, at, at, at
	f.Record.At, f.Sockets.At, f.Specs.At, f.Claims.At, f.Locks.At = at, at, at, at, at
}

// holds is a pod with a container that has devices.
func holds(name string, ids ...string) podresources.Pod {
	c := podresources.Container{Name: "main"}
	for _, id := range ids {
		c.Devices = append(c.Devices, podresources.Device{Resource: gpu, ID: id})
	}
	return podresources.Pod{Namespace: "ns", Name: name, Containers: []podresources.Container{c}}
}

func given(uid, container, id string) Given {
	return Given{UID: uid, Container: container, Resource: gpu, ID: id}
}

// TestUID: where two candidates remain, nobody guesses.
func TestUID(t *testing.T) {
	for _, tt := range []struct {
		name   string
		api    []PodUID // nil for a kubelet without
		record []Given
		want   string
		uids   UIDs
	}{
		{"the API knows one", []PodUID{{"ns", "p", "u1", false}, {"other", "p", "u2", false}}, nil, "u1", UIDs{Resolved: 1}},
		{"the API knows the old and the new, and the record one of them", []PodUID{{"ns", "p", "u1", false}, {"ns", "p", "u2", false}},
			[]Given{given("u2", "main", a1), given("u2", "main", a2)}, "u2", UIDs{Resolved: 1}},
		{"the API knows two, and the record both", []PodUID{{"ns", "p", "u1", false}, {"ns", "p", "u2", false}},
			[]Given{given("u1", "main", a1), given("u2", "main", a1), given("u1", "main", a2), given("u2", "main", a2)}, "", UIDs{Ambiguous: 1}},
		{"the API still knows the old one, and the record the new one", []PodUID{{"ns", "p", "u1", false}},
			[]Given{given("u2", "main", a1), given("u2", "main", a2)}, "", UIDs{Ambiguous: 1}},
		{"the API knows two, and the record another one", []PodUID{{"ns", "p", "u1", false}, {"ns", "p", "u2", false}},
			[]Given{given("u3", "main", a1), given("u3", "main", a2)}, "", UIDs{Ambiguous: 1}},
		{"the API knows two, and nobody else any", []PodUID{{"ns", "p", "u1", false}, {"ns", "p", "u2", false}}, nil, "", UIDs{Ambiguous: 1}},
		{"only the record", nil, []Given{given("u1", "main", a1), given("u1", "main", a2)}, "u1", UIDs{Resolved: 1}},
		{"the record has an old pod for one of the devices", nil,
			[]Given{given("u1", "main", a1), given("old", "main", a1), given("u1", "main", a2)}, "u1", UIDs{Resolved: 1}},
		{"the record has an old pod for both", nil,
			[]Given{given("u1", "main", a1), given("old", "main", a1), given("u1", "main", a2), given("old", "main", a2)}, "", UIDs{Ambiguous: 1}},
		{"the record has another container", nil, []Given{given("u1", "init", a1), given("u1", "init", a2)}, "", UIDs{Unknown: 1}},
		{"nobody knows", nil, nil, "", UIDs{Unknown: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := facts(t, start())
			f.Pods.Value = []podresources.Pod{holds("p", a1, a2)}
			if tt.api != nil {
				f.PodUIDs.Took(tt.api, nil, start())
			}
			f.Record.Value.Given = tt.record
			s := Join(f, nil, start(), options())
			if len(s.Allocations) != 2 || s.Allocations[0].UID != tt.want || s.Allocations[1].UID != tt.want || s.UIDs != tt.uids {
				t.Errorf("%+v %+v, want %q %+v", s.Allocations, s.UIDs, tt.want, tt.uids)
			}
		})
	}
}

// TestUnreleased: what no living pod has counts once it has lasted, and not while nobody can tell.
func TestUnreleased(t *testing.T) {
	f := facts(t, start())
	f.Pods.Value = []podresources.Pod{holds("p", a1)}
	f.Record.Value.Given = []Given{given("u1", "main", a1), given("u1", "init", a2), given("old", "main", a2), given("older", "main", a1)}
	s := Join(f, nil, start(), options())
	told := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, u := range s.Unreleased {
			got = append(got, u.What)
			if !u.Since.Equal(start()) {
				t.Errorf("%s: %s since %s", when, u.What, u.Since)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	told("at once")
	// The record is not told apart from a silent kubelet.
	later := start().Add(119 * time.Second)
	refresh(f, later)
	f.Pods.At = start()
	s = Join(f, s, later, options())
	told("while kubelet is silent")
	later = start().Add(2 * time.Minute)
	refresh(f, later)
	s = Join(f, s, later, options())
	// Of a1 nobody can say which of the two pods has it: u1 and older are both taken to live.
	told("later", gpu+" "+a2+" old main")
	f.Record.Value.Given = f.Record.Value.Given[:2]
	s = Join(f, s, later, options())
	told("once it is tidied up")
	f.Record.Value.Given = append(f.Record.Value.Given, given("old", "main", a2))
	if s = Join(f, s, later, options()); len(s.Unreleased) > 0 {
		t.Errorf("what came back did not begin anew: %v", s.Unreleased)
	}
}

// TestInitContainer: kubelet tells nobody of init containers. With the Pods API it is known that
// their pod lives.
func TestInitContainer(t *testing.T) {
	f := facts(t, start())
	f.Record.Value.Given = []Given{given("u1", "init", a1)}
	f.PodUIDs.Took([]PodUID{{"ns", "p", "u1", false}}, nil, start())
	s := Join(f, nil, start(), options())
	refresh(f, start().Add(time.Hour))
	if s = Join(f, s, start().Add(time.Hour), options()); len(s.Unreleased) > 0 {
		t.Errorf("%v", s.Unreleased)
	}
	// Nor does its pod end because that API does not answer any more.
	for _, d := range []time.Duration{2 * time.Hour, 3 * time.Hour} {
		refresh(f, start().Add(d))
		f.PodUIDs.At = start().Add(time.Hour)
		if s = Join(f, s, start().Add(d), options()); len(s.Unreleased) > 0 || s.Resources[0].Free != -1 {
			t.Errorf("%v, %d are free", s.Unreleased, s.Resources[0].Free)
		}
	}
}

// TestContests: two who have a hand in one device, for longer than changes take.
func TestContests(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Facts)
		want   []Contest
	}{
		{"nobody", func(*Facts) {}, nil},
		{"another plugin with the same name", func(f *Facts) {
			f.Allocatable.Value = []podresources.Device{{Resource: gpu, ID: "GPU-1"}, {Resource: gpu, ID: "GPU-2"}}
		}, []Contest{{gpu, ForeignList, 2}}},
		{"another plugin with another name", func(f *Facts) {
			f.Allocatable.Value = append(f.Allocatable.Value, podresources.Device{Resource: "nvidia.com/H100", ID: a2})
		}, []Contest{{"nvidia.com/H100", TwoResources, 1}, {gpu, TwoResources, 1}}},
		{"shares of a function that is whole elsewhere", func(f *Facts) {
			f.Allocatable.Value = append(f.Allocatable.Value, podresources.Device{Resource: "x/shared", ID: a2 + "::0"})
		}, nil},
		{"a claim", func(f *Facts) {
			f.Claims.Took(ClaimRecords{Records: []ClaimRecord{{UID: "c", Namespace: "ns", Name: "c", State: "Prepared",
				Devices: []ClaimDevice{{Pool: "p", Name: "gpu", Address: "0000:43:00.0", Group: []string{"0000:43:00.0", a1}}}}}}, nil, start())
		}, []Contest{{gpu, TwoMechanisms, 1}}},
		{"a claim that holds nothing", func(f *Facts) {
			f.Claims.Took(ClaimRecords{Records: []ClaimRecord{{UID: "c", Namespace: "ns", Name: "c", State: "Prepared",
				Devices: []ClaimDevice{{Pool: "p", Name: "gpu", Address: a1, Group: []string{a1}, Admin: true}}}}}, nil, start())
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := facts(t, start())
			tt.change(f)
			s := Join(f, nil, start(), options())
			if len(s.Contests) > 0 {
				t.Errorf("at once: %v", s.Contests)
			}
			later := start().Add(2 * time.Minute)
			refresh(f, later)
			if s = Join(f, s, later, options()); !slices.Equal(s.Contests, tt.want) {
				t.Errorf("%v, want %v", s.Contests, tt.want)
			}
		})
	}
}

// TestRegistrations: by kubelet's record and the sockets.
func TestRegistrations(t *testing.T) {
	f := facts(t, start())
	f.Sockets.Value = []Socket{
		{"kata-gpu-0a1b2c3d.sock", Yes}, {"kata-gpu-ffffffff.sock", No}, {"kata-gpu-0a1b2c3e.sock", Yes},
		{"kata-gpus-0a1b2c3d.sock", Yes}, {"kubelet.sock", Unknown}, {"kata-gpu-0a1b2c3d", Yes}, {"kata-gpu-0a1b2c3.sock", Yes},
	}
	s := Join(f, nil, start(), options())
	if want := []Registration{{gpu, Yes, 2, 1}}; !slices.Equal(s.Registrations, want) {
		t.Errorf("%+v, want %+v", s.Registrations, want)
	}
	f.Record.Value, f.Sockets.At = KubeletRecord{}, start().Add(-time.Hour)
	s = Join(f, nil, start(), options())
	if want := []Registration{{gpu, No, -1, -1}}; !slices.Equal(s.Registrations, want) {
		t.Errorf("%+v, want %+v", s.Registrations, want)
	}
	f.Locks.At = start().Add(-time.Hour)
	s = Join(f, nil, start(), options())
	if want := []Registration{{gpu, Unknown, -1, -1}}; !slices.Equal(s.Registrations, want) {
		t.Errorf("nobody knows whether it is the DRA driver's: %+v, want %+v", s.Registrations, want)
	}
	f.Record.Value.Registered = map[string][]string{gpu: {a1}}
	if s = Join(f, nil, start(), options()); len(s.Registrations) != 1 || s.Registrations[0].Registered != Yes {
		t.Errorf("kubelet has it, whoever has its lock: %+v", s.Registrations)
	}
	f.Record.Value = KubeletRecord{}
	f.Locks.Took([]Lock{{gpu, DRADriver}}, nil, start())
	if s = Join(f, nil, start(), options()); len(s.Registrations) > 0 {
		t.Errorf("a resource of the DRA driver: %+v", s.Registrations)
	}
}

// TestTwoRules: a name that two sets of rules have is one resource, and one registration.
func TestTwoRules(t *testing.T) {
	f := facts(t, start())
	f.Rules = append(f.Rules, declare.Passthrough())
	s := Join(f, nil, start(), options())
	if len(s.Registrations) != 1 || len(s.Units) != 2 || len(s.Resources) != 1 || s.Resources[0].Discovered != 2 || len(s.Functions) != 2 {
		t.Errorf("%+v %+v", s.Registrations, s.Resources)
	}
}

// TestOldKubelet: before 1.31 kubelet names no devices of a claim, so all of its record are
// the container's, each once.
func TestOldKubelet(t *testing.T) {
	f := facts(t, start())
	f.Claims.Took(ClaimRecords{Records: []ClaimRecord{{UID: "c", Namespace: "ns", Name: "claim", State: "Prepared", Devices: []ClaimDevice{
		{Pool: "p", Name: "gpu-a", Address: a1, Group: []string{a1}, Requests: []string{"r"}}, {Pool: "p", Name: "gpu-b", Address: a2, Group: []string{a2}},
	}}}}, nil, start())
	f.Pods.Value = []podresources.Pod{{Namespace: "ns", Name: "p", Containers: []podresources.Container{{Name: "main", Claims: []podresources.Claim{
		{Namespace: "ns", Name: "claim", Devices: []podresources.ClaimDevice{{CDI: []string{"x=1"}}, {CDI: []string{"x=1", "x=2"}}}},
	}}}}}
	s := Join(f, nil, start(), options())
	var got []string
	for _, a := range s.Allocations {
		got = append(got, strings.Join([]string{a.Address.String(), a.Device, a.Claim, a.Request, string(a.By)}, " "))
	}
	if want := []string{a1 + " gpu-a claim r dra", a2 + " gpu-b claim  dra"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestClaimMadeAnew: of two claims of one name the one counts that the pod has, by the CDI names of kubelet's answer, and the
// other one's devices are held for nobody.
func TestClaimMadeAnew(t *testing.T) {
	const device = "gpu-0000-01-00-0"
	record := func(uid, request string, admin bool) ClaimRecord {
		return ClaimRecord{UID: uid, Namespace: "ns", Name: "claim", State: "Prepared", Devices: []ClaimDevice{
			{Pool: "p", Name: device, Address: a1, Group: []string{a1}, Requests: []string{request}, Admin: admin}}}
	}
	for _, old := range []string{"u-0", "u-2"} { // whichever comes first
		f := facts(t, start())
		records := []ClaimRecord{record(old, "old", true), record("u-1", "new", false)}
		slices.SortFunc(records, func(a, b ClaimRecord) int { return strings.Compare(a.UID, b.UID) })
		f.Claims.Took(ClaimRecords{Records: records}, nil, start())
		f.Pods.Value = []podresources.Pod{{Namespace: "ns", Name: "p", Containers: []podresources.Container{{Name: "main", Claims: []podresources.Claim{
			{Namespace: "ns", Name: "claim", Devices: []podresources.ClaimDevice{
				{Driver: draname.Driver, Pool: "p", Device: device, CDI: []string{draname.ClaimKind + "=u-1-" + device}},
			}}}}}}}
		s := Join(f, nil, start(), options())
		if len(s.Allocations) != 1 || s.Allocations[0].Request != "new" || s.Allocations[0].Admin != No {
			t.Errorf("%+v", s.Allocations)
		}
		later := start().Add(2 * time.Minute)
		refresh(f, later)
		s = Join(f, s, later, options())
		if len(s.Unreleased) != 1 || s.Unreleased[0].What != old || s.Unreleased[0].Where != Claims {
			t.Errorf("%+v, want that %s is held for nobody", s.Unreleased, old)
		}
		f.Claims.Value.Records = []ClaimRecord{record(old, "old", true)}
		if s = Join(f, s, later, options()); s.Allocations[0].Request != "" || s.Allocations[0].Admin != Unknown {
			t.Errorf("of a claim without a record the other one's is told: %+v", s.Allocations)
		}
	}
}

// TestNothingKnown: of a node of which no source has answered nothing is told, and nothing is zero.
func TestNothingKnown(t *testing.T) {
	f := &Facts{Rules: []declare.Rules{declare.Passthrough()}}
	f.Pods.Took(nil, errors.New("away"), start())
	s := Join(f, nil, start(), options())
	if len(s.Functions)+len(s.Units)+len(s.Resources)+len(s.Allocations)+len(s.Registrations)+len(s.Unreleased)+len(s.Contests) > 0 || s.Claims != nil || s.Specs != nil {
		t.Errorf("%+v", s)
	}
	for _, of := range s.Sources {
		if of.Fresh(start(), time.Minute) {
			t.Errorf("%s is fresh", of.Source)
		}
	}
}

// TestCounters: units that are numbers are nobody's hardware.
func TestCounters(t *testing.T) {
	f := facts(t, start())
	f.Allocatable.Value = append(f.Allocatable.Value, podresources.Device{Resource: "rdma/x", ID: "0"}, podresources.Device{Resource: "x/uuid", ID: "GPU-0::1"})
	p := holds("p", a1)
	p.Containers[0].Devices = append(p.Containers[0].Devices, podresources.Device{Resource: "rdma/x", ID: "0"}, podresources.Device{Resource: "x/uuid", ID: "GPU-0::1"})
	f.Pods.Value = []podresources.Pod{p}
	s := Join(f, nil, start(), options())
	if len(s.Allocations) != 1 || len(s.Resources) != 1 || s.Resources[0].Allocated != 1 || s.Resources[0].Offered != 2 {
		t.Errorf("%+v %+v", s.Allocations, s.Resources)
	}
}
