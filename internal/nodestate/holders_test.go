package nodestate

import (
	"slices"
	"testing"
	"time"

	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/podresources"
)

// TestOrder: two pods of one name of which one has ended are told once, wherever they are in kubelet's
// answer.
func TestOrder(t *testing.T) {
	f := facts(t, start())
	of := func(pool string) podresources.Pod {
		return podresources.Pod{Namespace: "ns", Name: "p", Containers: []podresources.Container{{Name: "main", Claims: []podresources.Claim{
			{Namespace: "ns", Name: "claim", Devices: []podresources.ClaimDevice{{Driver: draname.Driver, Pool: pool, Device: "gpu-0000-41-00-0"}}},
		}}}}
	}
	f.Pods.Value = []podresources.Pod{of("p1"), of("p2"), of("p1")}
	s := Join(f, nil, start(), options())
	if len(s.Allocations) != 3 || s.Allocations[0] != s.Allocations[1] || s.Allocations[2].Pool != "p2" {
		t.Errorf("%+v", s.Allocations)
	}
}

// TestFree: what kubelet can still give is not what is allocatable less what is allocated.
func TestFree(t *testing.T) {
	for _, tt := range []struct {
		name        string
		allocatable []string
		pods        []podresources.Pod
		record      []Given
		api         []PodUID // nil for a kubelet without
		want        int
	}{
		{name: "nobody has one", allocatable: []string{a1, a2}, want: 2},
		{name: "one is taken, in two containers", allocatable: []string{a1, a2}, pods: []podresources.Pod{holds("p", a1), holds("q", a1)}, want: 1},
		{name: "the one that is taken is unhealthy", allocatable: []string{a2}, pods: []podresources.Pod{holds("p", a1)}, want: 1},
		{name: "both are taken, and one is unhealthy", allocatable: []string{a2}, pods: []podresources.Pod{holds("p", a1, a2)}},
		{name: "none is healthy"},
		{name: "a pod has ended", allocatable: []string{a1, a2}, record: []Given{given("u1", "main", a1)}, want: 2},
		{name: "a pod's init container has had another", allocatable: []string{a1, a2}, pods: []podresources.Pod{holds("p", a1)},
			record: []Given{given("u1", "main", a1), given("u1", "init", a2)}},
		{name: "a pod that only the API knows has one", allocatable: []string{a1, a2},
			record: []Given{given("u1", "init", a2)}, api: []PodUID{{"ns", "p", "u1", false}}, want: 1},
		{name: "a pod that nobody tells has one in an init container alone", allocatable: []string{a1, a2},
			record: []Given{given("u1", "init", a2)}, want: 2},
		{name: "a pod that the API knows to have ended has had one", allocatable: []string{a1, a2},
			record: []Given{given("u1", "main", a2)}, api: []PodUID{{"ns", "p", "u1", true}}, want: 2},
		{name: "a device that is told twice", allocatable: []string{a1, a1}, want: 1},
		{name: "one of another plugin of the name", allocatable: []string{a1, "GPU-1"}, pods: []podresources.Pod{holds("p", "GPU-1")}, want: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := facts(t, start())
			f.Allocatable.Value = nil
			for _, id := range tt.allocatable {
				f.Allocatable.Value = append(f.Allocatable.Value, podresources.Device{Resource: gpu, ID: id})
			}
			f.Pods.Value, f.Record.Value.Given = tt.pods, tt.record
			if tt.api != nil {
				f.PodUIDs.Took(tt.api, nil, start())
			}
			free := func(now time.Time) int {
				s := Join(f, nil, now, options())
				at := slices.IndexFunc(s.Resources, func(r Resource) bool { return r.Name == gpu })
				if got := s.Resources[at].Free; got != -1 && got != len(s.Idle) {
					t.Errorf("%d are free, and idle are %v", got, s.Idle)
				}
				return s.Resources[at].Free
			}
			if got := free(start()); got != tt.want {
				t.Errorf("%d are free, want %d", got, tt.want)
			}
			for _, of := range []*time.Time{&f.Allocatable.At, &f.Pods.At, &f.Record.At, &f.PodUIDs.At} {
				refresh(f, start().Add(time.Hour))
				*of = start()
				if got := free(start().Add(time.Hour)); got != -1 {
					t.Errorf("%d are free, of what kubelet said an hour ago", got)
				}
			}
		})
	}
}
