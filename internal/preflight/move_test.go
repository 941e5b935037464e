package preflight_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/preflight"
)

func TestParseMove(t *testing.T) {
	for text, want := range map[string]preflight.Move{
		"nvidia.com/gpu":       {Resource: "nvidia.com/gpu"},
		"nvidia.com/gpu=gpu.x": {Resource: "nvidia.com/gpu", Class: "gpu.x"},
		"gpu":                  {}, "": {}, "a/b/c": {}, "nvidia.com/gpu=": {}, "/gpu": {}, "nvidia.com/": {},
		"a b/c": {}, "a\xff/b": {},
	} {
		got, err := preflight.ParseMove(text)
		if diff := cmp.Diff(want, got); diff != "" || (err == nil) != (want != preflight.Move{}) {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
		if err != nil && !strings.Contains(err.Error(), "write nvidia.com/gpu") {
			t.Errorf("%q: no remedy in %q", text, err)
		}
	}
}

// dependents is a cluster with everything that may depend on a name, and with what only looks like it.
func dependents(t testing.TB) world {
	t.Helper()
	text, err := os.ReadFile("testdata/dependents.yaml")
	must(t, err)
	return world{cluster: string(text)}
}

// TestMove: each dependent is found where it is, and nothing that only looks like the name.
func TestMove(t *testing.T) {
	in := dependents(t).input(t)
	in.Ways, in.Moves = nil, []preflight.Move{{Resource: "nvidia.com/gpu", Class: "gpu.vfio.katacontainers.io"}}
	r := preflight.Run(in)
	want := []preflight.Users{{Kind: "Deployment", Namespace: "team", Count: 1, Example: "serve"},
		{Kind: "Pod", Namespace: "team", Count: 2, Example: "a"}}
	if diff := cmp.Diff(want, r.Moves[0].Users); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
	for _, f := range r.Findings {
		if f.ID != finding.NameUsed().ID || f.Help == "" || f.Place.Line == 0 {
			t.Errorf("%+v", f)
		}
	}
	golden.Assert(t, text(t, r), "move.txt")
}

// TestMoveClass: a class that is not there is missed, and one that only the input lacks is not said to be
// missing.
func TestMoveClass(t *testing.T) {
	for name, tt := range map[string]struct {
		class, want string
		options     manifest.Options
	}{
		"there":            {class: "gpu.vfio.katacontainers.io"},
		"none is named":    {},
		"not in the input": {class: "no.class", want: "the input has no DeviceClass no.class"},
		"not in the cluster": {class: "no.class", options: manifest.Options{Complete: []string{"DeviceClass"}},
			want: "the cluster has no DeviceClass no.class: make it before you migrate"},
	} {
		in := dependents(t).input(t, tt.options)
		in.Moves = []preflight.Move{{Resource: "nvidia.com/gpu", Class: tt.class}}
		if got := preflight.Run(in).Moves[0].Lacks; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// FuzzMove: no name and no text makes it fail, and a name is found in a text that is the name.
func FuzzMove(f *testing.F) {
	f.Add("nvidia.com/gpu", "a")
	f.Add(`a.b\.(/[`, "x_y")
	f.Fuzz(func(t *testing.T, prefix, base string) {
		m, err := preflight.ParseMove(prefix + "/" + base)
		if err != nil {
			return
		}
		const begin = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  a: |\n    "
		in := world{cluster: begin + m.Resource + "\n"}.input(t)
		in.Ways, in.Moves = nil, []preflight.Move{m}
		if r := preflight.Run(in); len(r.Findings) != 1 {
			t.Errorf("%q is found %d times", m.Resource, len(r.Findings))
		}
	})
}

// TestCompare: device by device, and only where there is something to compare.
func TestCompare(t *testing.T) {
	moves := []preflight.Move{{Resource: "nvidia.com/gpu"}}
	const gpu42 = `attributes: {type: {string: gpu}, resource.kubernetes.io/pciBusID: {string: "0000:42:00.0"}}`
	for name, tt := range map[string]struct {
		old, text string
		want      []string
	}{
		"same": {"nodeName: n2", "nodeName: n1", []string{"", ""}},
		"only in the plugin": {gpu42, "attributes: {}", []string{"",
			"kubelet offers it as nvidia.com/gpu, and the driver has not published it"}},
		"only in the driver": {`, {"Resource": "nvidia.com/gpu", "ID": "0000:42:00.0"}`, "", []string{"",
			"the driver has published it as gpu-0000-42-00-0, and kubelet does not offer it"}},
		"another type": {gpu42, strings.Replace(gpu42, "{string: gpu}", "{string: nvswitch}", 1), []string{"",
			`it is a device of nvidia.com/gpu, and of the type "nvswitch" to the driver`}},
		"not healthy": {gpu42, gpu42 + "\n      taints: [{key: unhealthy, value: HST020, effect: NoSchedule}]", []string{"",
			"kubelet offers it as nvidia.com/gpu, and the driver keeps pods from it: unhealthy=HST020:NoSchedule"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := ready(t).with(t, tt.old, tt.text)
			if strings.Contains(w.cluster, "nodeName: n2") {
				w = w.with(t, "nodeName: n2", "nodeName: n1")
			}
			in := w.input(t)
			in.Moves = moves
			r := preflight.Run(in)
			var got []string
			for _, d := range r.Nodes[0].Devices {
				got = append(got, d.Differs)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			found := 0
			for _, f := range r.Findings {
				if f.ID == finding.InventoriesDiffer().ID {
					found++
				}
			}
			if (found == 0) != (name == "same") {
				t.Errorf("%d findings", found)
			}
		})
	}
	in := ready(t).input(t)
	in.Moves = moves
	r := preflight.Run(in)
	got := []string{r.Nodes[0].Lacks, r.Nodes[1].Lacks}
	want := []string{"the input has no ResourceSlice of vfio.katacontainers.io with such a device of the node",
		"kubelet offered no such device when the node was captured"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what lacks (-want +got):\n%s", diff)
	}
	golden.Assert(t, text(t, r), "compare.txt")
}
