package cdispec_test

import (
	"strings"
	"testing"

	"kata-device-plugin/internal/cdispec"
)

const good = `{"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [
	{"name": "0000:1b:00.0", "containerEdits": {"deviceNodes": [{"path": "/dev/vfio/1", "hostPath": "/dev/vfio/devices/vfio1"}, {"path": "/dev/x"}]}}]}`

// TestParse: what runtimes take has its devices and nodes, and what they refuse says why.
func TestParse(t *testing.T) {
	s := cdispec.Parse("good.json", []byte(good))
	if s.Err != nil || s.Class != "nvidia.com/gpu" || len(s.Devices) != 1 || s.Devices[0].Name != "nvidia.com/gpu=0000:1b:00.0" {
		t.Fatalf("%+v", s)
	}
	var nodes []string
	for _, e := range s.Edits() {
		for n := range e.Get("deviceNodes").Each() {
			nodes = append(nodes, cdispec.OnHost(n))
		}
	}
	if got := strings.Join(nodes, " "); got != "/dev/vfio/devices/vfio1 /dev/x" {
		t.Errorf("the nodes are %s", got)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"0.5.0"`, `"99.0.0"`, `cdiVersion "99.0.0" is not known`},
		{`"0.5.0"`, `"0.3.0"`, "it uses what is there from version 0.5.0 on, and declares 0.3.0"},
		{`nvidia.com/gpu`, `1vidia.com/gpu`, "is not VENDOR/CLASS"},
		{`nvidia.com/gpu`, `gpu`, "is not VENDOR/CLASS"},
		{`"0000:1b:00.0"`, `"-"`, "is no name of a device"},
		{`"kind"`, `"kinds": 1, "kind"`, `unknown key "kinds"`},
		{`"path"`, `"pth": 1, "path"`, `unknown key "pth"`},
		{`"deviceNodes": [`, `"hooks": [], "deviceNodes": [`, ""},
		{`[
	{`, `[], "annotations": {"a": {`, "line "},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if err := cdispec.Parse("x.json", []byte(text)).Err; (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %q", c.to, c.from, err, c.want)
		}
	}
}

// FuzzParse: whatever is in a file, what is not refused has a kind and devices.
func FuzzParse(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("kind: a/b\ndevices: {name: x}\n"))
	f.Add([]byte("\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s := cdispec.Parse("x.yaml", data); s.Err == nil && (s.Class == "" || len(s.Devices) == 0 || s.Version() < 0) {
			t.Errorf("%q: %+v", data, s)
		}
	})
}
