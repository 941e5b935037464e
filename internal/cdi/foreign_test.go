package cdi_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/draname"
)

// claimSpec is a claim's spec with devices, which is JSON and YAML.
func claimSpec(kind string, names ...string) string {
	devices := make([]string, len(names))
	for i, n := range names {
		devices[i] = `{"name": "` + n + `", "containerEdits": {"deviceNodes": [{"path": "/dev/vfio/devices/vfio1"}]}}`
	}
	return `{"cdiVersion": "0.5.0", "kind": "` + kind + `", "devices": [` + strings.Join(devices, ", ") + `]}`
}

// TestClaimed: a claim's spec names what the claim holds, until it says something else or goes.
// What cannot be read says what it said.
func TestClaimed(t *testing.T) {
	dir := t.TempDir()
	n := cdi.NewNeighbours(dir)
	const uid = "1b9dfe5c-7f46-4b6a-9f0e-6b2f2ce7a1d3"
	path := filepath.Join(dir, cdi.FileName("kata.dra."+uid+".", draname.ClaimKind))
	if filepath.Base(path) != "kata.dra."+uid+".vfio.katacontainers.io-claim.json" {
		t.Errorf("the file is %s", path)
	}
	one, two := uid+"-gpu-0000-1b-00-0", uid+"-vf-10000-e1-1f-7"
	for _, c := range []struct {
		name, content string // no content is no file
		want          []string
		examined      bool
	}{
		{"garbage from the start", "{", nil, false},
		{"two devices", claimSpec(draname.ClaimKind, one, two), []string{one + " 0000:1b:00.0", two + " 10000:e1:1f.7"}, true},
		{"garbage", "{", []string{one + " 0000:1b:00.0", two + " 10000:e1:1f.7"}, false},
		{"too large", strings.Repeat(" ", 300<<10), []string{one + " 0000:1b:00.0", two + " 10000:e1:1f.7"}, false},
		{"nothing in it", "", []string{one + " 0000:1b:00.0", two + " 10000:e1:1f.7"}, false},
		{"one device", claimSpec(draname.ClaimKind, one), []string{one + " 0000:1b:00.0"}, true},
		{"names that are none of the driver's", claimSpec(draname.ClaimKind, "all", "0000-1b-00-0", "u-gpu-0000-1b-00", "u-gpu-0000-1B-00-0", "u-gpu-0000-1b-20-0"), nil, true},
		{"another kind", claimSpec("vfio.katacontainers.io/other", one), nil, true},
		{"two devices again", claimSpec(draname.ClaimKind, one, two), []string{one + " 0000:1b:00.0", two + " 10000:e1:1f.7"}, true},
		{"no file", "-", nil, true},
		{"garbage after that", "{", nil, false},
	} {
		var err error
		if c.content == "-" {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, []byte(c.content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		found, err := n.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range found {
			if f := &found[i]; (f.Err == nil && f.Unexamined == 0) != c.examined {
				t.Errorf("%s: %+v", c.name, f)
			}
			for _, d := range found[i].Claimed() {
				got = append(got, d.Name+" "+d.Address.String())
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// FuzzClaimed: a name is a claim's device just when it ends with an address as the kernel spells
// it, with dashes, behind something else.
func FuzzClaimed(f *testing.F) {
	for _, name := range []string{"u-gpu-0000-1b-00-0", "-0000-1b-00-0", "0000-1b-00-0", "u-vf-10000-e1-1f-7", "all", "", "----", "u-gpu-0000-1b-20-0"} {
		f.Add(name)
	}
	dashes := strings.NewReplacer(":", "-", ".", "-")
	f.Fuzz(func(t *testing.T, name string) {
		spec := cdi.Foreign{Kind: draname.ClaimKind, Names: []string{name}}
		for _, c := range spec.Claimed() {
			if c.Name != name || !strings.HasSuffix(name, "-"+dashes.Replace(c.Address.String())) {
				t.Errorf("%q is %s", name, c.Address)
			}
		}
	})
}
