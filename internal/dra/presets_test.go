package dra_test

import (
	"testing"

	"gotest.tools/v3/golden"
	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/sim"
)

// TestPlatforms has what is published of every preset, and what is not, in plain sight.
func TestPlatforms(t *testing.T) {
	for name, src := range machines(t) {
		t.Run(name, func(t *testing.T) {
			s := src.Look(nil)
			i := dra.Take(s)
			pool := dra.Pool(offers(i))
			inLimits(t, pool)
			text := struct {
				Slices   [][]resourceapi.Device `json:"slices"`
				Findings []string               `json:"findings"`
			}{Findings: texts(all(i))}
			for _, slice := range pool.Slices {
				text.Slices = append(text.Slices, slice.Devices)
			}
			got, err := yaml.Marshal(text)
			must(t, err)
			golden.Assert(t, string(got), name+".yaml")

			// Nothing has changed, so nothing is to be written.
			for what, s := range map[string]*dra.Inventory{
				"the same snapshot": dra.Take(s), "another look": dra.Take(src.Look(s)), "a glance": dra.Take(src.Glance(s)),
				"a new start": dra.Take(src.Look(nil)),
			} {
				if !apiequality.Semantic.DeepEqual(pool, dra.Pool(offers(s))) {
					t.Errorf("%s is another pool", what)
				}
			}
		})
	}
}

// TestOffered: of every preset's GPUs and NVSwitches each is published, alone or with its group.
func TestOffered(t *testing.T) {
	for _, p := range sim.Platforms() {
		_, src := node(t, p)
		i := dra.Take(src.Look(nil))
		count := map[dra.Type]int{}
		for _, d := range i.Devices {
			count[d.Type] += len(d.Nodes)
			if !d.Healthy() || len(d.Nodes) > len(d.Group) {
				t.Errorf("%s: %s: %v, nodes %v of %v", p.Name, d.Name, d.Faults, d.Nodes, d.Group)
			}
		}
		if count[dra.GPU] != p.GPUs || count[dra.NVSwitch] != p.NVSwitches {
			t.Errorf("%s: %v", p.Name, count)
		}
	}
}
