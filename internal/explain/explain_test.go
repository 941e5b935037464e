package explain_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/explain"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/manifest"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// now is what ages are counted from.
func now() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

// load makes a view of a text.
func load(t testing.TB, text string, complete ...string) *check.View {
	t.Helper()
	return check.Look(parse(t, text, complete...), check.Options{})
}

func parse(t testing.TB, text string, complete ...string) *manifest.Set {
	t.Helper()
	set, err := manifest.Load(nil, manifest.Options{
		Texts: []manifest.Source{{Name: "in.yaml", Data: []byte(text)}}, Complete: complete,
	})
	must(t, err)
	return set
}

// fixture is a file of testdata: its first two lines say what is explained, and which kinds are
// complete. A file NAME.node beside it is a captured node.
type fixture struct {
	kind, namespace, name string
	set                   *manifest.Set
	options               check.Options
	view                  *check.View
	nodes                 []explain.Node
}

func read(t testing.TB, file string) fixture {
	t.Helper()
	data, err := os.ReadFile(file)
	must(t, err)
	lines := strings.SplitN(string(data), "\n", 3)
	words := strings.Fields(lines[0])
	if len(words) != 4 || words[1] != "explain" {
		t.Fatalf("%s: the first line is %q: want # explain KIND NAMESPACE/NAME", file, lines[0])
	}
	f := fixture{kind: words[2]}
	f.namespace, f.name, _ = strings.Cut(words[3], "/")
	kinds := strings.TrimSpace(strings.TrimPrefix(lines[1], "# complete"))
	f.set = parse(t, string(data), strings.FieldsFunc(kinds, func(c rune) bool { return c == ',' })...)
	f.capture(t, strings.TrimSuffix(file, "yaml")+"node")
	f.view = check.Look(f.set, f.options)
	return f
}

func (f *fixture) capture(t testing.TB, file string) {
	t.Helper()
	in, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	must(t, err)
	defer in.Close()
	c, err := capture.Read(in)
	must(t, err)
	f.options.Nodes = []check.NodeInput{{File: "a.node", Capture: c}}
	f.nodes = []explain.Node{{Name: c.Meta.Hostname, Source: "a.node", Inventory: &inventory.Inventory{}, Capture: c}}
}

func (f fixture) explain(t testing.TB, nodes ...explain.Node) *explain.Report {
	t.Helper()
	of := explain.Pod
	if f.kind == "claim" {
		of = explain.Claim
	}
	r, err := of(explain.Input{View: f.view, Nodes: append(slices.Clone(f.nodes), nodes...)}, f.namespace, f.name)
	must(t, err)
	return r
}

// TestFixtures: each input is explained as the text beside it says.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	must(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			r := read(t, file).explain(t)
			var got bytes.Buffer
			must(t, explain.Text(&got, r, explain.TextOptions{Now: now(), Width: 100}))
			golden.Assert(t, got.String(), strings.TrimSuffix(filepath.Base(file), "yaml")+"txt")
			lawful(t, r)
		})
	}
}

// lawful holds a report against what is so of every one.
func lawful(t testing.TB, r *explain.Report) {
	t.Helper()
	for _, c := range r.Chains {
		broken := false
		for _, s := range c.Steps {
			switch {
			case broken != (s.Verdict == explain.NotReached):
				t.Errorf("%s: step %q is %q, and whether there was a no before is %t", c.About, s.Name, s.Verdict, broken)
			case s.Verdict == explain.No && (s.Check == "" || s.Help == "" || s.Says == "" || len(s.Evidence) == 0):
				t.Errorf("%s: the no of step %q lacks something: %+v", c.About, s.Name, s)
			case s.Verdict != explain.No && (s.Check != "" || s.Help != ""):
				t.Errorf("%s: step %q is %q, and has a check", c.About, s.Name, s.Verdict)
			case s.Verdict == explain.Unknown && s.Says == "":
				t.Errorf("%s: step %q does not say what is unknown", c.About, s.Name)
			}
			broken = broken || s.Verdict == explain.No
		}
	}
}

// contains says whether evidence of a capture has some words, with its source and its age.
func contains(e explain.Evidence, words string) bool {
	return strings.Contains(e.Text, words) && e.Source == "a.capture" && now().Sub(e.At) == time.Hour
}

// TestOrder: the questions are the same for every pod, in one order.
func TestOrder(t *testing.T) {
	want := map[string][]string{
		"free": {"spelled the same", "plugin on a matching node", "device present and declared", "registered", "node allocatable", "free",
			"scheduler constraints", "admitted by kubelet", "allocated, CDI resolved", "network got the device", "visible in the container"},
		"claim-in-use": {"claim exists", "class exists", "devices published on nodes that match", "free", "allocated", "reserved", "prepared",
			"CDI resolved", "visible in the container"},
	}
	for name, steps := range want {
		var got []string
		for _, s := range read(t, "testdata/"+name+".yaml").explain(t).Chains[0].Steps {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, steps) {
			t.Errorf("%s: the steps are %q", name, got)
		}
	}
}

// TestChecks: what a no names is in the catalogue.
func TestChecks(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	must(t, err)
	known := map[string]bool{}
	for _, k := range finding.Catalogue() {
		known[k.ID] = true
	}
	for _, file := range files {
		for _, c := range read(t, file).explain(t).Chains {
			if b := c.Break(); b != nil && !known[b.Check] {
				t.Errorf("%s: no catalogue has %s", file, b.Check)
			}
		}
	}
}

func TestJSON(t *testing.T) {
	var got bytes.Buffer
	must(t, explain.JSON(&got, read(t, "testdata/free.yaml").explain(t)))
	golden.Assert(t, got.String(), "free.json")
}

// TestNotFound: the error says where was searched, and what is near.
func TestNotFound(t *testing.T) {
	const refused = `
apiVersion: v1
kind: Event
metadata: {name: e, namespace: team, uid: u}
involvedObject: {kind: ReplicaSet, namespace: team, name: train}
reason: FailedCreate
message: 'Error creating: pods "train-abc" is forbidden: exceeded quota: gpus'
`
	for _, c := range []struct{ name, text, pod, want string }{
		{"empty", "", "train", "pod team/train is not in the input (in.yaml)"},
		{"elsewhere", "{apiVersion: v1, kind: Pod, metadata: {name: train, namespace: other}}", "train",
			"pod team/train is not in the input (in.yaml), which has pod other/train"},
		{"quota", refused, "train-abc", `pod team/train-abc is not in the input (in.yaml); in.yaml:7:10: Error creating: pods "train-abc" is ` +
			`forbidden: exceeded quota: gpus`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := explain.Pod(explain.Input{View: load(t, c.text)}, "team", c.pod)
			if _, ok := errors.AsType[*explain.NotFound](err); !ok || err.Error() != c.want {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
	if _, err := explain.Claim(explain.Input{View: load(t, "")}, "team", "mine"); err == nil {
		t.Error("a claim that is not there is explained")
	}
}

// TestAmount: what is no whole number of devices is said as it stands, and is not 0.
func TestAmount(t *testing.T) {
	for amount, want := range map[string]string{"2": "2", "2000m": "2", "500m": "500m", "1.5": "1.5", "many": "many"} {
		for resource, by := range map[string]string{"x.io/y": "", "x.io/z": ", by device class z"} {
			view := load(t, "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: z}, spec: {extendedResourceName: x.io/z}}\n---\n"+
				"{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team, uid: u}, spec: {containers: [{name: c, "+
				"resources: {limits: {"+resource+": "+amount+"}}}]}}")
			r, err := explain.Pod(explain.Input{View: view}, "team", "p")
			must(t, err)
			if got := r.Chains[0].About; got != "resource "+resource+", "+want+" requested"+by {
				t.Errorf("%s of %s: %q", amount, resource, got)
			}
		}
	}
}

// TestWidth: no line is wider than the terminal, unless it is one word.
func TestWidth(t *testing.T) {
	for _, width := range []int{60, 80} {
		var got bytes.Buffer
		must(t, explain.Text(&got, read(t, "testdata/excluded.yaml").explain(t), explain.TextOptions{Now: now(), Width: width}))
		for line := range strings.Lines(got.String()) {
			if words := strings.Fields(line); len(strings.TrimRight(line, "\n")) > width && len(words) > 2 {
				t.Errorf("width %d: %q has %d columns", width, line, len(line))
			}
		}
	}
}

// FuzzExplain: whatever the objects are, the explanation is lawful.
func FuzzExplain(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	must(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(f, err)
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := manifest.Load(nil, manifest.Options{
			Texts:    []manifest.Source{{Name: "in.yaml", Data: []byte(text)}},
			Complete: []string{"nodes", "pods", "configmaps", "resourceclaims", "resourceclaimtemplates", "resourceslices", "deviceclasses"},
		})
		if err != nil {
			return
		}
		in := explain.Input{View: check.Look(set, check.Options{})}
		for _, o := range set.Objects {
			of := map[string]func(explain.Input, string, string) (*explain.Report, error){"Pod": explain.Pod, "ResourceClaim": explain.Claim}[o.Kind]
			if of == nil {
				continue
			}
			r, err := of(in, in.View.RefOf(o).Namespace, o.Name)
			if err != nil {
				continue // the first of two with one name
			}
			lawful(t, r)
			must(t, explain.Text(&bytes.Buffer{}, r, explain.TextOptions{Now: now()}), explain.JSON(&bytes.Buffer{}, r))
		}
	})
}
