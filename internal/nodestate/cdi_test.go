package nodestate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
)

// TestNames: what a CDI name comes to.
func TestNames(t *testing.T) {
	whole := func() map[string][]string {
		return map[string][]string{a1: {"/dev/vfio/devices/vfio41"}, a2: {"/dev/vfio/devices/vfio42"}}
	}
	for _, tt := range []struct {
		name  string
		specs []Spec
		want  map[CDIState]int
	}{
		{"no spec, and a plugin that is registered", nil, map[CDIState]int{CDIMissing: 2}},
		{"as it should be", []Spec{{Path: "a", Kind: gpu, Devices: whole()}}, map[CDIState]int{CDIResolvable: 2}},
		{"another number", []Spec{{Path: "a", Kind: gpu, Devices: map[string][]string{a1: {"/dev/vfio/devices/vfio42"}, a2: {"/dev/vfio/devices/vfio42"}}}},
			map[CDIState]int{CDIStale: 1, CDIResolvable: 1}},
		{"hidden by a directory that wins", []Spec{
			{Path: "a", Kind: gpu, Devices: map[string][]string{a1: {"/dev/null"}, a2: {"/dev/null"}}},
			{Path: "b", Kind: gpu, Rank: 1, Devices: whole()},
		}, map[CDIState]int{CDIResolvable: 2}},
		{"by whichever is read first", []Spec{
			{Path: "b", Kind: gpu, Rank: 1, Devices: whole()},
			{Path: "a", Kind: gpu, Devices: map[string][]string{a1: {"/dev/null"}, a2: {"/dev/null"}}},
		}, map[CDIState]int{CDIResolvable: 2}},
		{"one only in the other directory", []Spec{
			{Path: "a", Kind: gpu, Devices: whole()}, {Path: "b", Kind: gpu, Rank: 1, Devices: map[string][]string{a2: {"/dev/null"}}},
		}, map[CDIState]int{CDIResolvable: 1, CDIStale: 1}},
		{"names that no device has", []Spec{{Path: "a", Kind: gpu, Devices: whole()}, {Path: "b", Kind: gpu, Devices: map[string][]string{"all": {"/dev/nvidia0"}}}},
			map[CDIState]int{CDIResolvable: 2}},
		{"a device that is no more", []Spec{{Path: "a", Kind: gpu, Devices: map[string][]string{a1: nil, a2: nil, "0000:99:00.0": nil}}},
			map[CDIState]int{CDIStale: 1, CDIResolvable: 2}},
		{"two files", []Spec{{Path: "a", Kind: gpu, Devices: whole()}, {Path: "b", Kind: gpu, Devices: map[string][]string{a2: nil}}},
			map[CDIState]int{CDIConflicting: 1, CDIResolvable: 1}},
		{"a file that nobody could read", []Spec{{Path: "a", Kind: gpu, Devices: whole()}, {Path: "b", State: SpecUnexamined}}, map[CDIState]int{CDIUnknown: 2}},
		{"one of another kind", []Spec{{Path: "a", Kind: gpu, Devices: whole()}, {Path: "b", Kind: "x.org/y", State: SpecUnexamined}},
			map[CDIState]int{CDIResolvable: 2}},
		{"one in a directory that wins", []Spec{{Path: "a", Kind: gpu, Devices: whole()}, {Path: "b", Rank: 1, State: SpecUnexamined}},
			map[CDIState]int{CDIUnknown: 2}},
		{"one in a directory that does not", []Spec{{Path: "a", State: SpecUnexamined}, {Path: "b", Kind: gpu, Rank: 1, Devices: whole()}},
			map[CDIState]int{CDIResolvable: 2}},
		{"one in a directory that does not, and a name in neither", []Spec{
			{Path: "a", State: SpecUnexamined}, {Path: "b", Kind: gpu, Rank: 1, Devices: map[string][]string{a1: {"/dev/vfio/devices/vfio41"}}},
		}, map[CDIState]int{CDIResolvable: 1, CDIUnknown: 1}},
		{"one beside two that conflict anyway", []Spec{
			{Path: "a", Kind: gpu, Devices: whole()}, {Path: "b", Kind: gpu, Devices: whole()}, {Path: "c", State: SpecUnexamined},
		}, map[CDIState]int{CDIConflicting: 2}},
		{"one that hides two that conflict", []Spec{
			{Path: "a", Kind: gpu, Devices: whole()}, {Path: "b", Kind: gpu, Devices: whole()}, {Path: "c", Rank: 1, State: SpecUnexamined},
		}, map[CDIState]int{CDIUnknown: 2}},
		{"a private file", []Spec{{Path: "a", Kind: gpu, Devices: whole(), Private: true}}, map[CDIState]int{CDIUnreadable: 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := facts(t, start())
			f.Specs.Value = tt.specs
			s := Join(f, nil, start(), options())
			if diff := cmp.Diff([]Names{{Kind: gpu, Count: tt.want}}, s.Names); diff != "" {
				t.Error(diff)
			}
		})
	}
	// Nor has a resource a name that CDI refuses.
	f := facts(t, start())
	odd := "nvidia.com/4gpu"
	f.Rules = []declare.Rules{renamed{declare.Passthrough(), odd}}
	f.Record.Value, f.Allocatable.Value = KubeletRecord{Registered: map[string][]string{odd: {a1, a2}}}, nil
	if s := Join(f, nil, start(), options()); len(s.Names) > 0 || len(s.Units) != 2 || s.Units[0].Resource != odd {
		t.Errorf("%v %v", s.Names, s.Units)
	}
	// Where no plugin offers anything no name is expected.
	f = facts(t, start())
	f.Allocatable.Value, f.Record.Value = nil, KubeletRecord{}
	if s := Join(f, nil, start(), options()); len(s.Names) > 0 {
		t.Errorf("%v", s.Names)
	}
}

// renamed are rules whose first resource has another name.
type renamed struct {
	declare.Table
	name string
}

func (r renamed) Declare(s *host.Snapshot, past declare.Past) declare.Declaration {
	d := r.Table.Declare(s, past)
	d.Resources[0].Name = r.name
	return d
}
