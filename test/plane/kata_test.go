//go:build !kubernetes134

package plane

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// TestKataResolves has a row for each of the rules.
func TestKataResolves(t *testing.T) {
	const specs = `
{"cdiVersion": "0.6.0", "kind": "k/claim", "devices": [
  {"name": "a", "containerEdits": {"deviceNodes": [{"path": "/dev/x/a", "hostPath": "/dev/a"}]}},
  {"name": "b", "containerEdits": {"deviceNodes": [{"path": "/dev/b"}]}},
  {"name": "also-a", "containerEdits": {"deviceNodes": [{"path": "/dev/a"}]}},
  {"name": "none", "containerEdits": {"env": ["X=1"]}}],
 "containerEdits": {"deviceNodes": [{"path": "/dev/vfio/vfio"}]}}
{"cdiVersion": "0.6.0", "kind": "k/twice", "devices": [{"name": "a", "containerEdits": {"deviceNodes": [{"path": "/dev/c"}]}}]}
{"cdiVersion": "0.6.0", "kind": "k/twice", "devices": [{"name": "a", "containerEdits": {"deviceNodes": [{"path": "/dev/c"}]}}]}
{"cdiVersion": "0.6.0", "kind": "p/gpu", "devices": [{"name": "1", "containerEdits": {"deviceNodes": [{"path": "/dev/g"}]}}, {"name": "2", "containerEdits": {"deviceNodes": [{"path": "/dev/a"}]}}]}
`
	dir := t.TempDir()
	for i, s := range strings.Split(strings.TrimSpace(specs), "\n{") {
		name := filepath.Join(dir, string(rune('a'+i))+".json")
		if err := os.WriteFile(name, []byte("{"+strings.TrimPrefix(s, "{")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		claim  []string
		plugin []string
		want   []string // nil: refused
	}{
		{"the path on the host", []string{"k/claim=a"}, nil, []string{"/dev/a"}},
		{"the path, if the host has the same", []string{"k/claim=b"}, nil, []string{"/dev/b"}},
		{"each name once", []string{"k/claim=a", "k/claim=a", "k/claim=b"}, nil, []string{"/dev/a", "/dev/b"}},
		{"a name that no spec has", []string{"k/claim=z"}, nil, nil},
		{"a name in two specs", []string{"k/twice=a"}, nil, nil},
		{"a device without nodes", []string{"k/claim=none"}, nil, nil},
		{"two names of one node", []string{"k/claim=a", "k/claim=also-a"}, nil, nil},
		{"a plugin's device and a claim's", []string{"k/claim=a"}, []string{"1"}, []string{"/dev/g", "/dev/a"}},
		{"one node from both", []string{"k/claim=a"}, []string{"2"}, nil},
	} {
		container := &api.ContainerResources{}
		resource := &api.ClaimResource{}
		for _, name := range c.claim {
			resource.CdiDevices = append(resource.CdiDevices, &api.CDIDevice{Name: name})
		}
		container.DynamicResources = []*api.DynamicResource{{ClaimResources: []*api.ClaimResource{resource}}}
		if c.plugin != nil {
			container.Devices = []*api.ContainerDevices{{ResourceName: "p/gpu", DeviceIds: c.plugin}}
		}
		got, err := KataResolves([]string{dir}, container)
		if !slices.Equal(got, c.want) || (err != nil) != (c.want == nil) {
			t.Errorf("%s: %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}
