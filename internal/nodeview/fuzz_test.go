package nodeview_test

import (
	"testing"
	"testing/fstest"

	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/nodeview"
)

// FuzzSpec: whatever is in a spec, it is judged, and the other sources are.
func FuzzSpec(f *testing.F) {
	f.Add([]byte(`{"cdiVersion": "0.6.0", "kind": "a/b", "devices": [{"name": "x", "containerEdits": {"deviceNodes": [{"path": "/dev/x"}]}}]}`))
	f.Add([]byte("kind: a/b\ndevices: {name: x}\n"))
	f.Add([]byte("\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := nodeview.Join(nodeview.Sources{Files: fstest.MapFS{"etc/cdi/x.yaml": {Data: data}}})
		if len(data) <= 4<<20 && (s.Source(nodestate.Specs).Err != nil || s.Specs[nodestate.SpecValid]+s.Specs[nodestate.SpecInvalid] != 1) {
			t.Errorf("%q: %v, %v", data, s.Source(nodestate.Specs).Err, s.Specs)
		}
	})
}
