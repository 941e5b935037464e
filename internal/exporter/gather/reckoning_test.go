package gather

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/cdispec"
)

// TestOneReckoning: CDI specs are read in two ways. The exporter and the plugins read those of their own node with the
// library that runtimes have; kubectl-device reads texts, of other nodes as well. What one refuses the other does,
// and the devices of what they take have the same names and nodes.
func TestOneReckoning(t *testing.T) {
	edits := func(key, value string) string {
		return fmt.Sprintf(`{"cdiVersion":"1.1.0","kind":"x.org/y","devices":[{"name":"d","containerEdits":{%q:%s}}]}`, key, value)
	}
	all := map[string]string{
		"no edits":                   `{"cdiVersion":"1.1.0","kind":"x.org/y","devices":[{"name":"d","containerEdits":{}}]}`,
		"no devices":                 `{"cdiVersion":"1.1.0","kind":"x.org/y","devices":[]}`,
		"nothing":                    ``,
		"a list":                     `[]`,
		"a key twice":                "cdiVersion: 0.5.0\nkind: x.org/y\nkind: x.org/z\ndevices: [{name: d, containerEdits: {env: [A=b]}}]\n",
		"an anchor":                  "cdiVersion: 0.5.0\nkind: x.org/y\ndevices: [{name: d, containerEdits: &e {env: [A=b]}}, {name: f, containerEdits: *e}]\n",
		"a name that is a number":    "cdiVersion: 0.5.0\nkind: x.org/y\ndevices: [{name: 0, containerEdits: {env: [A=b]}}]\n",
		"a version that is a number": "cdiVersion: 0.5\nkind: x.org/y\ndevices: [{name: d, containerEdits: {env: [A=b]}}]\n",
		"edits of all that are bad":  `{"cdiVersion":"1.1.0","kind":"x.org/y","devices":[{"name":"d","containerEdits":{"env":["A=b"]}}],"containerEdits":{"env":["A"]}}`,
		"the same in YAML":           "cdiVersion: 0.5.0\nkind: x.org/y\ndevices:\n- name: d\n  containerEdits: {deviceNodes: [{path: /dev/x, hostPath: /dev/z}]}\n",
	}
	all["a key twice, in JSON"] = `{"cdiVersion":"1.1.0","kind":"x.org/y","kind":"x.org/z","devices":[{"name":"d","containerEdits":{"env":["A=b"]}}]}`
	all["a key of edits twice"] = `{"cdiVersion":"1.1.0","kind":"x.org/y","devices":[{"name":"d","containerEdits":{"env":["A=b"],"env":["B=c"]}}]}`
	all["a device twice"] = `{"cdiVersion":"1.1.0","kind":"x.org/y","devices":[{"name":"d","containerEdits":{"env":["A=b"]}},{"name":"d","containerEdits":{"env":["A=b"]}}]}`
	all["a device that is null"] = `{"cdiVersion":"1.1.0","kind":"x.org/y","devices":[null]}`
	all["a kind that is a number"] = `{"cdiVersion":"1.1.0","kind":1,"devices":[{"name":"d","containerEdits":{"env":["A=b"]}}]}`
	for _, e := range [][2]string{
		{"env", `["A=b"]`}, {"env", `[]`}, {"env", `null`}, {"env", `["A"]`}, {"env", `["=b"]`}, {"env", `[""]`}, {"env", `"A=b"`}, {"env", `[1]`},
		{"deviceNodes", `[{"path":"/dev/x"}]`}, {"deviceNodes", `[{"path":""}]`}, {"deviceNodes", `[{}]`}, {"deviceNodes", `[null]`},
		{"deviceNodes", `[{"path":"/dev/x","type":"c"}]`}, {"deviceNodes", `[{"path":"/dev/x","type":"x"}]`},
		{"deviceNodes", `[{"path":"/dev/x","permissions":"rwm"}]`}, {"deviceNodes", `[{"path":"/dev/x","permissions":"x"}]`},
		{"deviceNodes", `[{"path":"/dev/x","permissions":"none"}]`}, {"deviceNodes", `[{"path":"/dev/x","major":-1}]`},
		{"deviceNodes", `[{"path":"/dev/x","major":1,"minor":3}]`}, {"deviceNodes", `[{"path":"/dev/x","major":"a"}]`},
		{"deviceNodes", `[{"path":"/dev/x","major":1.5}]`}, {"deviceNodes", `[{"path":"/dev/x","fileMode":420}]`}, {"deviceNodes", `{"path":"/dev/x"}`},
		{"hooks", `[{"hookName":"prestart","path":"/x"}]`}, {"hooks", `[{"hookName":"none","path":"/x"}]`}, {"hooks", `[{"hookName":"poststop"}]`},
		{"hooks", `[{"hookName":"poststop","path":"/x","env":["A"]}]`}, {"hooks", `[null]`},
		{"mounts", `[{"hostPath":"/x","containerPath":"/x"}]`}, {"mounts", `[{"hostPath":"/x"}]`}, {"mounts", `[{"containerPath":"/x"}]`},
		{"netDevices", `[{"hostInterfaceName":"a","name":"b"}]`}, {"netDevices", `[{"hostInterfaceName":"a"}]`}, {"netDevices", `[{"name":"a"}]`},
		{"netDevices", `[{"hostInterfaceName":"a","name":"b"},{"hostInterfaceName":"a","name":"c"}]`},
		{"netDevices", `[{"hostInterfaceName":"a","name":"b"},{"hostInterfaceName":"c","name":"b"}]`},
		{"intelRdt", `{}`}, {"intelRdt", `{"closID":"x"}`}, {"intelRdt", `{"closID":"a/b"}`}, {"intelRdt", `{"closID":".."}`}, {"intelRdt", `{"closID":"a\nb"}`},
		{"additionalGids", `[5]`}, {"additionalGids", `[]`}, {"additionalGids", `["a"]`}, {"additionalGids", `[-1]`},
	} {
		all[e[0]+" "+e[1]] = edits(e[0], e[1])
	}
	for _, a := range []string{`{"a":"b"}`, `{"a b":"c"}`, `{"":"c"}`, `{"x.org/a":"b"}`, `{"x.org/":"b"}`, `{"a":1}`} {
		all["annotations "+a] = `{"cdiVersion":"1.1.0","kind":"x.org/y","annotations":` + a + `,"devices":[{"name":"d","containerEdits":{"env":["A=b"]}}]}`
		all["annotations of a device "+a] = `{"cdiVersion":"1.1.0","kind":"x.org/y","devices":[{"name":"d","annotations":` + a + `,"containerEdits":{"env":["A=b"]}}]}`
	}
	for name, text := range all {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.WriteFile(filepath.Join(dir, "x.json"), []byte(text), 0o644))
			read, err := cdi.NewNeighbours(dir).Read(nil)
			must(t, err)
			parsed := cdispec.Parse("x.json", []byte(text))
			if (read[0].Err == nil) != (parsed.Err == nil) {
				t.Fatalf("%s\nruntimes: %v\nthe text: %v", text, read[0].Err, parsed.Err)
			}
			if parsed.Err != nil {
				return
			}
			for i, d := range parsed.Devices {
				var nodes []string
				for n := range d.Get("containerEdits", "deviceNodes").Each() {
					nodes = append(nodes, cdispec.OnHost(n))
				}
				if want := read[0].Kind + "=" + read[0].Names[i]; d.Name != want || !slices.Equal(nodes, read[0].Nodes[i]) {
					t.Errorf("%s\n%s with %s, want %s with %s", strings.TrimSpace(text), d.Name, nodes, want, read[0].Nodes[i])
				}
			}
		})
	}
}
