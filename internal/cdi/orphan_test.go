package cdi_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kata-device-plugin/internal/cdi"
)

// TestOrphans: of an owner's files those are found that are no resource's, and nobody else's.
func TestOrphans(t *testing.T) {
	dir := t.TempDir()
	const owner = "kata.nic."
	for _, f := range []struct{ owner, kind string }{
		{owner, "intel.com/vfio"}, {owner, "intel.com/old"}, {"kata.", "nvidia.com/gpu"}, {"sriov-dp-", "intel.com/old"},
	} {
		if _, err := cdi.NewFile(dir, f.owner, f.kind).Sync(devices(1)); err != nil {
			t.Fatal(err)
		}
	}
	torn, pending := filepath.Join(dir, owner+"torn.json"), filepath.Join(dir, "."+owner+"intel.com-old.json123")
	for _, name := range []string{torn, pending, filepath.Join(dir, owner+"x.yaml")} {
		if err := os.WriteFile(name, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, owner+"directory.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := cdi.Orphans(dir, owner, []string{"intel.com/vfio", "intel.com/new"})
	if err != nil {
		t.Fatal(err)
	}
	want := []cdi.Orphan{{Path: filepath.Join(dir, "kata.nic.intel.com-old.json"), Name: "intel.com-old"}, {Path: torn, Name: "torn"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	for _, o := range got {
		if err := o.Remove(); err != nil {
			t.Error(err)
		}
		if err := o.Remove(); err != nil {
			t.Errorf("once more: %v", err)
		}
	}
	if got, err := cdi.Orphans(dir, owner, []string{"intel.com/vfio"}); err != nil || len(got) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := cdi.Orphans(filepath.Join(dir, "absent"), owner, nil); err != nil || len(got) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestKind: kubelet accepts resource names that are no CDI kinds.
func TestKind(t *testing.T) {
	for resource, ok := range map[string]bool{
		"nvidia.com/gpu": true, "rdma/hca_shared": true, "intel.com/sriov-net.a": true,
		"intel.com/10G": false, "1and1.com/x": false, "intel.com/": false, "gpu": false,
	} {
		if err := cdi.Kind(resource); (err == nil) != ok {
			t.Errorf("%s: %v", resource, err)
		}
	}
}

// TestNodes: a device may have several nodes, and one that is elsewhere on the host.
func TestNodes(t *testing.T) {
	f := cdi.NewFile(t.TempDir(), "kata.nic.", "rdma/hca")
	d := cdi.Device{Name: "0000:65:00.0::1", Nodes: []cdi.Node{
		{Path: "/dev/infiniband/uverbs0", Permissions: "rwm"},
		{Path: "/dev/vfio/41", Host: "/dev/vfio/noiommu-41", Permissions: "rw"},
	}}
	sync(t, f, []cdi.Device{d}, true)
	sync(t, f, []cdi.Device{d}, false)
	got, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "cdiVersion": "0.5.0",
  "kind": "rdma/hca",
  "devices": [
    {
      "name": "0000:65:00.0::1",
      "containerEdits": {
        "deviceNodes": [
          {
            "path": "/dev/infiniband/uverbs0",
            "type": "c",
            "permissions": "rwm"
          },
          {
            "path": "/dev/vfio/41",
            "hostPath": "/dev/vfio/noiommu-41",
            "type": "c",
            "permissions": "rw"
          }
        ]
      }
    }
  ],
  "containerEdits": {}
}
`
	if string(got) != want {
		t.Errorf("%s", got)
	}
	other := cdi.Device{Name: d.Name, Nodes: slices.Clone(d.Nodes)}
	other.Nodes[1].Host = ""
	if !f.Resolves(d) || f.Resolves(other) {
		t.Error("nodes are told apart by where they are in the container only")
	}
}
