package preflight_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/preflight"
	"kata-device-plugin/internal/report"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// world is a cluster with captured nodes, as texts; old is one more of a node.
type world struct{ cluster, plugin, driver, old string }

// ready is a cluster in which everything is in order: node n1 is the device plugin's and n2 the DRA
// driver's.
func ready(t testing.TB) world {
	t.Helper()
	file := func(name string) string {
		text, err := os.ReadFile(filepath.Join("testdata/ready", name))
		must(t, err)
		return string(text)
	}
	return world{cluster: file("cluster.yaml"), plugin: file("plugin.node"), driver: file("driver.node")}
}

// with replaces a text that has to be there, wherever it is.
func (w world) with(t testing.TB, old, text string) world {
	t.Helper()
	if !strings.Contains(w.cluster+w.plugin+w.driver, old) {
		t.Fatalf("there is no %q", old)
	}
	for _, at := range []*string{&w.cluster, &w.plugin, &w.driver} {
		*at = strings.ReplaceAll(*at, old, text)
	}
	return w
}

// input loads the world. Empty texts are left out.
func (w world) input(t testing.TB, options ...manifest.Options) preflight.Input {
	t.Helper()
	o := manifest.Options{Complete: []string{"RuntimeClass", "NetworkPolicy", "PodMonitor"}}
	if len(options) > 0 {
		o = options[0]
	}
	o.Texts = []manifest.Source{{Name: "cluster.yaml", Data: []byte(w.cluster)}}
	set, err := manifest.Load(nil, o)
	must(t, err)
	var nodes []check.NodeInput
	for name, text := range map[string]string{"plugin.node": w.plugin, "driver.node": w.driver, "old.node": w.old} {
		if text == "" {
			continue
		}
		c, err := capture.Read(strings.NewReader(text))
		must(t, err)
		nodes = append(nodes, check.NodeInput{File: name, Capture: c})
	}
	slices.SortFunc(nodes, func(a, b check.NodeInput) int { return strings.Compare(b.File, a.File) })
	co := check.Options{Nodes: nodes}
	return preflight.Input{View: check.Look(set, co), Checked: check.Run(set, co), Ways: preflight.Ways()}
}

// answers are those of all questions by way and question.
func answers(r *preflight.Report) map[string]preflight.Line {
	all := map[string]preflight.Line{}
	for _, w := range r.Ways {
		for _, l := range w.Lines {
			all[string(w.Way)+": "+l.Question] = l
		}
	}
	return all
}

// text is what people see.
func text(t testing.TB, r *preflight.Report) string {
	t.Helper()
	var b bytes.Buffer
	must(t, preflight.Text(&b, r, 0), report.Text(&b, &check.Result{Findings: r.Findings}, report.TextOptions{}))
	return b.String()
}

// TestReady: where all is in order every answer is yes but one, which somebody who knows has to give.
func TestReady(t *testing.T) {
	r := preflight.Run(ready(t).input(t))
	for question, l := range answers(r) {
		want := preflight.Yes
		if l.Question == "the shim takes the devices of claims" {
			want = preflight.Unknown
		}
		if l.Answer != want {
			t.Errorf("%s: %s, want %s: %v %v", question, l.Answer, want, l.Findings, l.Tell)
		}
	}
	if len(r.Findings) > 0 {
		t.Errorf("found %v", r.Findings)
	}
	golden.Assert(t, text(t, r), "ready.txt")
}

// TestNothing: where nothing is known no answer is yes, or no.
func TestNothing(t *testing.T) {
	r := preflight.Run(world{}.input(t, manifest.Options{}))
	for question, l := range answers(r) {
		if l.Answer != preflight.Unknown || len(l.Tell) == 0 {
			t.Errorf("%s: %s, %v", question, l.Answer, l.Tell)
		}
	}
	if !r.Incomplete() || len(r.Findings) > 0 {
		t.Errorf("found %v", r.Findings)
	}
	golden.Assert(t, text(t, r), "nothing.txt")
}

// TestUncaptured: of a node without a capture nothing is known that only a capture has, whatever is known
// of others.
func TestUncaptured(t *testing.T) {
	const both = "the feature gates are on|the runtime gives containers CDI devices|" +
		"the runtime looks where CDI specs are|the CDI specs can be used|" +
		"the nodes know its handler|devices are plugged before the VM starts|a VM has a root port for each device|" +
		"agents have no privilege that they do not need|the hardware can be handed out"
	open := map[preflight.Way]string{
		preflight.DevicePlugin: both + "|the shim asks kubelet which devices a pod has|kubelet can align devices|" +
			"plugins serve what kubelet offers",
		preflight.DRA: both + "|the shim takes the devices of claims",
	}
	for node, leave := range map[string]func(*world){
		"n1": func(w *world) { w.plugin = "" },
		"n2": func(w *world) { w.driver = "" },
	} {
		w := ready(t)
		leave(&w)
		for _, of := range preflight.Run(w.input(t)).Ways {
			if of.Answer() != preflight.Unknown {
				t.Errorf("without a capture of %s the cluster is %s for %s", node, of.Answer(), of.Way)
			}
			for _, l := range of.Lines {
				told := strings.Contains("\n"+strings.Join(l.Tell, "\n"), "\na capture of node "+node+" ")
				want := slices.Contains(strings.Split(open[of.Way], "|"), l.Question)
				if told != want || want && l.Answer != preflight.Unknown {
					t.Errorf("without a capture of %s, %s: %s: %s, %q", node, of.Way, l.Question, l.Answer, l.Tell)
				}
			}
		}
	}
}

// TestCapturedTwice: of two captures of one node the newer one counts, whatever the host was called then, and
// it is said which one is left out.
func TestCapturedTwice(t *testing.T) {
	in := ready(t).with(t, "labels: {kubernetes.io/os: linux, katacontainers.io/kata-runtime: \"true\"}}",
		"labels: {kubernetes.io/os: linux, katacontainers.io/kata-runtime: \"true\", kubernetes.io/hostname: host}}")
	want := answers(preflight.Run(in.input(t)))
	for _, name := range []string{"n1", "host"} {
		w := in
		w.old = world{plugin: w.plugin}.with(t, "meta time 2026-03-01T12", "meta time 2026-03-01T11").
			with(t, "meta hostname n1", "meta hostname "+name).with(t, `cold_plug_vfio = "root-port"`, "").plugin
		r := preflight.Run(w.input(t))
		if diff := cmp.Diff(want, answers(r)); diff != "" {
			t.Errorf("called %s (-want +got):\n%s", name, diff)
		}
		if len(r.Findings) != 1 || r.Findings[0].ID != finding.CapturedTwice().ID || r.Findings[0].Place.File != "old.node" {
			t.Errorf("called %s: found %v", name, r.Findings)
		}
	}
}

// TestCaptureAlone: a capture says itself which kubelet there is. What only the node's object has stays
// open.
func TestCaptureAlone(t *testing.T) {
	w := world{driver: ready(t).driver}.with(t, "meta kubelet-dir", "meta kubelet v1.33.4\nmeta kubelet-dir")
	got := answers(preflight.Run(w.input(t, manifest.Options{})))
	for question, want := range map[string]preflight.Answer{
		"device-plugin: every kubelet is new enough":                    preflight.Yes,
		"dra: every kubelet is new enough":                              preflight.No,
		"device-plugin: the runtime gives containers CDI devices":       preflight.Unknown,
		"device-plugin: devices are plugged before the VM starts":       preflight.Yes,
		"device-plugin: the shim asks kubelet which devices a pod has":  preflight.Yes,
		"device-plugin: a RuntimeClass starts Kata VMs":                 preflight.Unknown,
		"device-plugin: agents have no privilege that they do not need": preflight.Unknown,
	} {
		if l := got[question]; l.Answer != want {
			t.Errorf("%s: %s, want %s: %v %v", question, l.Answer, want, l.Evidence, l.Tell)
		}
	}
}

// TestAPI: what the API server says of itself counts, not what dumps have.
func TestAPI(t *testing.T) {
	for _, tt := range []struct {
		served []string
		want   preflight.Answer
	}{{[]string{"v1", "resource.k8s.io/v1"}, preflight.Yes}, {[]string{"v1", "resource.k8s.io/v1beta1"}, preflight.No}} {
		in := ready(t).input(t)
		in.API = &preflight.API{Version: "v1.33.0", Served: tt.served}
		r := preflight.Run(in)
		if l := answers(r)["dra: the API server serves what the driver writes"]; l.Answer != tt.want {
			t.Errorf("%v: %s", tt.served, l.Answer)
		}
	}
}

// TestJSON: every list is there, empty where there is nothing, and the findings are what check writes.
func TestJSON(t *testing.T) {
	for name, r := range map[string]*preflight.Report{"empty": {}, "ready": preflight.Run(ready(t).input(t))} {
		var b bytes.Buffer
		must(t, preflight.JSON(&b, r, []byte(`{"findings": []}`)))
		if !json.Valid(b.Bytes()) || strings.Contains(b.String(), "null") ||
			!strings.Contains(b.String(), `"schemaVersion": 1`) {
			t.Errorf("%s:\n%s", name, b.String())
		}
	}
}

// TestWriteError: a full disk is not a ready cluster.
func TestWriteError(t *testing.T) {
	r := preflight.Run(world{}.input(t))
	for _, err := range []error{
		preflight.Text(full{}, r, 0), preflight.Verdict(full{}, r), preflight.JSON(full{}, r, []byte("{}"))} {
		if !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("got %v", err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
