package inventory_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	"sigs.k8s.io/yaml"

	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/sim"
)

// TestPresets has what people see of every machine there is a preset of.
func TestPresets(t *testing.T) {
	for _, p := range append(sim.Platforms(), sim.Adapters()) {
		t.Run(p.Name, func(t *testing.T) {
			_, src := node(t, p)
			i := take(t, src, inventory.Input{NICs: rules(t, network)})
			for _, f := range []inventory.Format{inventory.Table, inventory.Wide, inventory.Tree, inventory.Name} {
				golden.Assert(t, write(t, i, f, inventory.Options{}), p.Name+"."+string(f))
			}
			if p.Name == "workstation" || p.Name == "adapters" || p.Name == "gb200" {
				golden.Assert(t, write(t, i, inventory.JSON, inventory.Options{}), p.Name+".json")
				golden.Assert(t, write(t, i, inventory.YAML, inventory.Options{}), p.Name+".yaml")
			}
			roundTrip(t, i)
			if again := take(t, src, inventory.Input{NICs: rules(t, network)}); !cmp.Equal(again, i) {
				t.Errorf("the same node gives another inventory:\n%s", cmp.Diff(i, again))
			}
		})
	}
}

// roundTrip: the document has fields that the types know, all of them, and loses nothing.
func roundTrip(t *testing.T, i *inventory.Inventory) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(write(t, i, inventory.JSON, inventory.Options{}))))
	d.DisallowUnknownFields()
	var fromJSON, fromYAML inventory.Inventory
	must(t, d.Decode(&fromJSON), yaml.UnmarshalStrict([]byte(write(t, i, inventory.YAML, inventory.Options{})), &fromYAML))
	if diff := cmp.Diff(i, &fromJSON); diff != "" {
		t.Errorf("JSON loses something:\n%s", diff)
	}
	if diff := cmp.Diff(i, &fromYAML); diff != "" {
		t.Errorf("YAML loses something:\n%s", diff)
	}
}
