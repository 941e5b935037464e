package cdi_test

import (
	"os"
	"testing"

	"kata-device-plugin/internal/cdi"
)

// TestNull: a list that has null in it makes the library that runtimes read specs with panic. It is a spec that
// nobody can parse, in anybody's file as in our own, and no program ends because of it.
func TestNull(t *testing.T) {
	for _, edits := range []string{
		`"deviceNodes": [null]`, `"deviceNodes": [{"path": "/dev/x"}, null]`, `"mounts": [null]`, `"hooks": [null]`, `"netDevices": [null]`,
		`"deviceNodes": [~]`, `"intelRdt": null, "deviceNodes": [null]`,
	} {
		for _, version := range []string{"0.3.0", "0.5.0", "1.1.0"} {
			for _, text := range []string{
				`{"cdiVersion": "` + version + `", "kind": "nvidia.com/gpu", "devices": [{"name": "d", "containerEdits": {` + edits + `}}]}`,
				`{"cdiVersion": "` + version + `", "kind": "nvidia.com/gpu", "devices": [{"name": "d", "containerEdits": {"env": ["A=b"]}}], "containerEdits": {` + edits + `}}`,
			} {
				dir := t.TempDir()
				own := cdi.NewFile(dir, "kata.", "nvidia.com/gpu")
				if err := os.WriteFile(own.Path(), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				found, err := cdi.NewNeighbours(dir).Read(nil)
				if err != nil || len(found) != 1 || found[0].Err == nil {
					t.Errorf("%s: %+v, %v", text, found, err)
				}
				own.Read()
				if _, err := own.Sync([]cdi.Device{{Name: "0000:1b:00.0", Nodes: []cdi.Node{{Path: "/dev/vfio/devices/vfio0", Permissions: "rw"}}}}); err != nil {
					t.Errorf("%s: %v", text, err)
				}
			}
		}
	}
}
