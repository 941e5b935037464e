package check_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/manifest"
)

// TestTogether: two captures that each have a half of what a check needs do not make a whole.
func TestTogether(t *testing.T) {
	set, err := manifest.Load(nil, manifest.Options{})
	must(t, err)
	record := capture.New(capture.Meta{Hostname: "a"})
	record.Add(capture.Entry{Path: capture.CheckpointPath, Kind: capture.File, Text: []byte(`{"Data":{"RegisteredDevices":{"x.io/y":["1"]}}}`)})
	answer := capture.New(capture.Meta{Hostname: "b"})
	answer.Add(capture.Entry{Path: capture.PodsPath, Kind: capture.File, Text: []byte(`{"Pods":[]}`)})
	nodes := []check.NodeInput{{Capture: record}, {Capture: answer}}
	r := check.Run(set, check.Options{Enable: []string{"MAP003"}, Nodes: nodes})
	want := []check.Skipped{{ID: "MAP003", Missing: []string{
		"capture of node a as one of these: captured nodes with kubelet's answer who has which device",
		"capture of node b as one of these: captured nodes with kubelet's record of devices",
	}, Inputs: []string{"more of a captured node"}}}
	if diff := cmp.Diff(want, r.Skipped); diff != "" || len(r.Passed) > 0 {
		t.Errorf("passed %v, skipped (-want +got):\n%s", r.Passed, diff)
	}
	answer.Add(capture.Entry{Path: capture.CheckpointPath, Kind: capture.File, Text: []byte(`{"Data":{}}`)})
	r = check.Run(set, check.Options{Enable: []string{"MAP003"}, Nodes: nodes})
	if len(r.Passed) > 0 || len(r.Skipped) != 1 || len(r.Skipped[0].Missing) != 1 {
		t.Errorf("of one of two nodes it cannot be said: passed %v, skipped %v", r.Passed, r.Skipped)
	}
	r = check.Run(set, check.Options{Enable: []string{"MAP003"}, Nodes: nodes[1:]})
	if !slices.Equal(r.Passed, []string{"MAP003"}) {
		t.Errorf("passed %v, skipped %v", r.Passed, r.Skipped)
	}
}

// TestRedacted: names that were replaced are not compared with those of objects.
func TestRedacted(t *testing.T) {
	c := capture.New(capture.Meta{Hostname: "n", Redacted: true})
	c.Add(capture.Entry{Path: capture.PodsPath, Kind: capture.File, Text: []byte(`{"Pods":[]}`)})
	set := load(t, pod("p", ", uid: u", `x.io/y: "1"`, "  nodeName: n\nstatus: {phase: Running}\n"))
	r := check.Run(set, check.Options{Enable: []string{"MAP001"}, Nodes: []check.NodeInput{{Capture: c}}})
	if len(r.Findings)+len(r.Passed) > 0 || len(r.Skipped) != 1 {
		t.Errorf("found %v, passed %v, skipped %v", found(r), r.Passed, r.Skipped)
	}
}

// TestNodeName: a capture says the name of its node, and whoever loads it may know better.
func TestNodeName(t *testing.T) {
	c := capture.New(capture.Meta{Hostname: "n.example.com"})
	c.Add(capture.Entry{Path: capture.PodsPath, Kind: capture.File, Text: []byte(`{"Pods":[]}`)})
	set := load(t, pod("p", ", uid: u", `x.io/y: "1"`, "  nodeName: n\nstatus: {phase: Running}\n"))
	for name, want := range map[string]int{"": 0, "n": 1} {
		r := check.Run(set, check.Options{Enable: []string{"MAP001"}, Nodes: []check.NodeInput{{Name: name, Capture: c}}})
		if len(r.Findings) != want {
			t.Errorf("as %q: %v", name, found(r))
		}
	}
}

// TestWhoseCapture: what kubelet says of names counts where the capture is known to be of a Node of the input,
// whatever the host is called there, and where the input has no Nodes.
func TestWhoseCapture(t *testing.T) {
	const label, address = "labels: {kubernetes.io/hostname: host}", "status: {addresses: [{type: Hostname, address: host}]}"
	of := func(name, meta, more string) string {
		return "---\napiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", uid: " + name + ", " + meta + "}\n" + more + "\n"
	}
	for name, tt := range map[string]struct {
		nodes    string
		redacted bool
		counts   bool
	}{
		"by its name":            {of("host", "", ""), false, true},
		"by the label":           {of("host.example.com", label, ""), false, true},
		"by the address":         {of("i-0123", "", address) + of("other", "", ""), false, true},
		"another one":            {of("other", "", ""), false, false},
		"one of two":             {of("a", label, "") + of("b", "", address), false, false},
		"with other words":       {of("host", "", ""), true, false},
		"without Nodes":          {"", false, true},
		"other words, no Nodes":  {"", true, true},
		"its address is another": {of("a", "", "status: {addresses: [{type: InternalIP, address: host}]}"), false, false},
	} {
		c := capture.New(capture.Meta{Hostname: "host", Redacted: tt.redacted})
		c.Add(capture.Entry{Path: capture.CheckpointPath, Kind: capture.File, Text: []byte(`{"Data":{"RegisteredDevices":{"x.io/y":["1"]}}}`)})
		set := load(t, pod("p", "", `x.io/y: "1"`, "")+tt.nodes, "nodes", "configmaps")
		r := check.Run(set, check.Options{Enable: []string{"NAM001"}, Nodes: []check.NodeInput{{Capture: c}}})
		known := slices.ContainsFunc(r.Names, func(s check.Spelling) bool { return s.Name == "x.io/y" })
		if known != tt.counts || (len(r.Findings) == 0) != tt.counts {
			t.Errorf("%s: it counts: %v, and is found: %v", name, known, found(r))
		}
	}
}

// TestNewestCapture: of two captures of one node, in whatever order, the newer one counts.
func TestNewestCapture(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	of := func(host string, at time.Time, resource string) check.NodeInput {
		c := capture.New(capture.Meta{Hostname: host, Time: at})
		c.Add(capture.Entry{Path: capture.CheckpointPath, Kind: capture.File, Text: []byte(`{"Data":{"RegisteredDevices":{"` + resource + `":["1"]}}}`)})
		return check.NodeInput{File: resource, Capture: c}
	}
	old, now := of("host", at, "x.io/old"), of("n.example.com", at.Add(time.Second), "x.io/new")
	set := load(t, "apiVersion: v1\nkind: Node\nmetadata: {name: n.example.com, uid: n, labels: {kubernetes.io/hostname: host}}\n")
	for _, nodes := range [][]check.NodeInput{{old, now}, {now, old}} {
		r := check.Run(set, check.Options{Nodes: nodes})
		if len(r.Names) != 1 || r.Names[0].Name != "x.io/new" || !slices.Equal(found(r), []string{"EVD008 note node n.example.com"}) {
			t.Errorf("advertised: %v, found: %v", r.Names, found(r))
		}
	}
}

// TestSameWord: two captures with the same word in the place of the host's name are of one node only if they are
// of one boot. With the real name they are.
func TestSameWord(t *testing.T) {
	of := func(file, boot string, redacted bool) check.NodeInput {
		c := capture.New(capture.Meta{Hostname: "name-0123456789", Boot: boot, Redacted: redacted})
		c.Add(capture.Entry{Path: capture.CheckpointPath, Kind: capture.File, Text: []byte(`{"Data":{"RegisteredDevices":{"x.io/` + file + `":["1"]}}}`)})
		return check.NodeInput{File: file, Capture: c}
	}
	set, err := manifest.Load(nil, manifest.Options{})
	must(t, err)
	for _, test := range []struct {
		a, b check.NodeInput
		one  bool
	}{
		{of("a", "1", true), of("b", "2", true), false},
		{of("a", "", true), of("b", "", true), false},
		{of("a", "1", true), of("b", "1", true), true},
		{of("a", "1", true), of("b", "1", false), false},
		{of("a", "1", false), of("b", "2", false), true},
	} {
		r := check.Run(set, check.Options{Enable: []string{"EVD008"}, Nodes: []check.NodeInput{test.a, test.b}})
		if one := slices.Equal(found(r), []string{"EVD008 note node name-0123456789"}); one != test.one || len(r.Names) != map[bool]int{true: 1, false: 2}[test.one] {
			t.Errorf("%+v and %+v: found %v, advertised %v", test.a.Capture.Meta, test.b.Capture.Meta, found(r), r.Names)
		}
	}
}

// TestOwnManifests: what this project deploys has no more privilege than it needs.
func TestOwnManifests(t *testing.T) {
	set, err := manifest.Load([]string{"../../deploy"}, manifest.Options{})
	must(t, err)
	r := check.Run(set, check.Options{Enable: []string{"SEC", "DSP011"}})
	if got := found(r); got != nil {
		t.Errorf("%v", got)
	}
	for _, id := range []string{"SEC004", "SEC005", "SEC006", "SEC008", "SEC009", "DSP011"} {
		if !slices.Contains(r.Passed, id) {
			t.Errorf("%s has not been looked at: %v", id, r.Skipped)
		}
	}
}

// FuzzNode: whatever a capture has, it is checked.
func FuzzNode(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.node")
	must(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(f, err)
		f.Add(string(text))
	}
	set, err := manifest.Load(nil, manifest.Options{})
	must(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := capture.Read(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, f := range check.Run(set, check.Options{Nodes: []check.NodeInput{{Name: "n", File: "f", Capture: c}}}).Findings {
			if f.Message == "" || f.Help == "" || f.Place.File != "f" || strings.Contains(f.Message, "%!") {
				t.Errorf("%+v", f)
			}
		}
	})
}

// FuzzSpec: whatever is in a CDI directory, it is read or refused.
func FuzzSpec(f *testing.F) {
	f.Add("cdiVersion: 0.6.0\nkind: x.io/y\ndevices:\n- name: a\n  containerEdits: {deviceNodes: [{path: /dev/a, major: 1}]}\n")
	f.Add(`{"cdiVersion": "1.1.0", "kind": "x.io/y.z", "annotations": {}, "devices": [{"name": "0", "containerEdits": {"mounts": [{"hostPath": "", "type": "x"}]}}]}`)
	f.Add("kind: /\ndevices: [{name: ''}]")
	set, err := manifest.Load(nil, manifest.Options{})
	must(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		c := capture.New(capture.Meta{})
		c.Add(capture.Entry{Path: "/etc/cdi", Kind: capture.Absent})
		c.Add(capture.Entry{Path: "/var/run/cdi", Kind: capture.Dir, Names: []string{"a.yaml", "b.json"}})
		for _, name := range []string{"a.yaml", "b.json"} {
			c.Add(capture.Entry{Path: "/var/run/cdi/" + name, Kind: capture.File, Text: []byte(text)})
		}
		r := check.Run(set, check.Options{Enable: []string{"CDI"}, Nodes: []check.NodeInput{{File: "f", Capture: c}}})
		refused := slices.ContainsFunc(r.Findings, func(f check.Finding) bool { return f.ID == "CDI004" })
		twice := slices.ContainsFunc(r.Findings, func(f check.Finding) bool { return f.ID == "CDI006" })
		if refused == twice {
			t.Errorf("a spec that is there twice is refused: %v, defines something: %v", refused, twice)
		}
	})
}
