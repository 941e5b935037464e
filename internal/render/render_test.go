package render

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const onePod = `apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
  - name: c
    image: i:1
    resources:
      limits:
        nvidia.com/gpu: 1
`

// TestUntouched: what need not change is the same text, however it is written.
func TestUntouched(t *testing.T) {
	for what, input := range map[string]string{
		"nothing":              "",
		"blank lines":          "\n\n  \n",
		"comments":             "# a\n---\n# b\n---\n",
		"no last line":         "a:   1",
		"separators":           "---\n---\n--- # c\na:   {b:  1}\n---   \nc: d\n---",
		"content behind one":   "--- {a:   1}\n--- [b]\n",
		"a block with one":     "a: |\n  ---\n  b\n",
		"directives":           "%YAML 1.2\n---\na:   1\n",
		"a mark":               "\ufeffa:   1\n",
		"Windows":              "a:   1\r\n---\r\nb:   2\r\n",
		"an end":               "a:   1\n...\n",
		"no object":            "just a string\n---\n- a list\n---\n12\n",
		"an object of others":  "apiVersion: batch.volcano.sh/v1alpha1\nkind:   Job\nspec: {tasks: []}\n",
		"anchors":              "apiVersion: v1\nkind: ConfigMap\ndata: {a: &x b,   c: *x}\n",
		"anchors in a pod":     "apiVersion: v1\nkind: Pod\nspec: {a: &x b,   c: *x, containers: []}\n",
		"a pod without a spec": "apiVersion: v1\nkind:   Pod\n",
		"JSON":                 "{\"a\":\t1,\n\t\"b\": [ ]}",
		"null":                 "apiVersion: v1\nkind: Pod\nspec:   {containers: [null, {resources: null}, {resources: {limits: null}}]}\n",
	} {
		for _, via := range []Via{DevicePlugin, DRA, ExtendedResource} {
			if got := outcome(t, input, Default().With(via)); got != input {
				t.Errorf("%s via %s:\n%q\nwant\n%q", what, via, got, input)
			}
		}
	}
}

// TestThereAndBack: every case whose limits can be written in another way comes back to the byte.
func TestThereAndBack(t *testing.T) {
	n := 0
	for _, file := range cases(t) {
		input := readSections(t, file)[0].text
		for _, via := range []Via{DRA, ExtendedResource} {
			there := outcome(t, input, Default().With(via))
			if there == input || strings.HasPrefix(there, "refused:") || strings.Contains(there, "note: ") || strings.HasPrefix(input, "{") {
				continue
			}
			n++
			back, _, _ := strings.Cut(outcome(t, there, Default().With(DevicePlugin)), "note: ")
			if diff := cmp.Diff(input, back); diff != "" {
				t.Errorf("%s (-before +after %s and back):\n%s", file, via, diff)
			}
			if diff := cmp.Diff(there, outcome(t, there, Default().With(via))); diff != "" {
				t.Errorf("%s (-once +twice %s):\n%s", file, via, diff)
			}
		}
	}
	if n < 12 {
		t.Errorf("only %d went there and back", n)
	}
}

// TestBetweenWays: from claims to extended resources is as from limits, and the other way round.
func TestBetweenWays(t *testing.T) {
	r := seeded(t)
	for range 12 {
		w := writer{r: r}
		input := w.documents()
		claims, extended := Default().With(DRA), Default().With(ExtendedResource)
		for _, tt := range []struct{ first, second *Policy }{{claims, extended}, {extended, claims}} {
			direct := normal(t, outcome(t, input, tt.second))
			detour := normal(t, outcome(t, outcome(t, input, tt.first), tt.second))
			if diff := cmp.Diff(direct, detour); diff != "" {
				t.Fatalf("(-direct +by a detour):\n%s\n%s", diff, input)
			}
		}
	}
}

// TestFilesAreOneSet: a template is written once for a namespace, before whoever needs it first, and known in
// all files.
func TestFilesAreOneSet(t *testing.T) {
	files := []File{
		{"config.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")},
		{"a.yaml", []byte("# mine\n---\n" + onePod)},
		{"b.yaml", []byte(strings.ReplaceAll(onePod, "name: p\n", "name: q\n"))},
		{"c.yaml", []byte(strings.ReplaceAll(onePod, "name: p\n", "name: p\n  namespace: other\n"))},
	}
	there, err := Render(files, Default().With(DRA))
	must(t, err)
	var templates []int
	for i, f := range there.Files {
		if f.Name != files[i].Name {
			t.Errorf("file %d is %s", i, f.Name)
		}
		templates = append(templates, strings.Count(string(f.Data), "kind: ResourceClaimTemplate"))
	}
	if diff := cmp.Diff([]int{0, 1, 0, 1}, templates); diff != "" {
		t.Errorf("templates in each file (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(string(there.Files[1].Data), "# mine\n---\napiVersion: resource.k8s.io/v1\n") {
		t.Errorf("the template is not before the pod:\n%s", there.Files[1].Data)
	}
	back, err := Render(there.Files, Default())
	must(t, err)
	if diff := cmp.Diff(files, back.Files); diff != "" || len(back.Notes) > 0 {
		t.Errorf("notes %v (-before +after):\n%s", back.Notes, diff)
	}
}

// TestProblemsOfAllFiles: everything that is wrong is said at once, in order, and nothing is written.
func TestProblemsOfAllFiles(t *testing.T) {
	bad := strings.ReplaceAll(onePod, "gpu: 1", "gpu: 1Ki")
	r, err := Render([]File{{"a", []byte("x: 1\n---\n" + bad + "---\n" + bad)}, {"b", []byte(onePod)}, {"c", []byte(bad)}}, Default().With(DRA))
	const what = `: Pod p: spec.containers[0].resources.limits[nvidia.com/gpu]: "1Ki" is not a whole number of devices in decimal digits; write a number, such as 1`
	want := "a:13" + what + "\na:25" + what + "\nc:11" + what
	if err == nil || r != nil || err.Error() != want {
		t.Errorf("got %v, %v, want\n%s", r, err, want)
	}
	if p, ok := errors.AsType[Problem](err); !ok || p.Line != 13 {
		t.Errorf("the first problem is %+v", p)
	}
	_, err = Render([]File{{"a", []byte("a: 1\n---\nb: [\n---\nc: \"\n")}}, Default())
	problems, ok := errors.AsType[Problems](err)
	if !ok || len(problems) != 2 || problems[0].Line != 4 || problems[1].Line != 6 {
		t.Errorf("got %v", err)
	}
	_, err = Render([]File{{"a", []byte(onePod + "        nvidia.com/gpu: 2\n")}}, Default().With(DRA))
	if problems, ok := errors.AsType[Problems](err); !ok || problems[0].Line != 12 {
		t.Errorf("a limit stands twice, and got %v", err)
	}
	_, err = Render([]File{{"a", make([]byte, mostBytes+1)}}, Default())
	if err == nil || err.Error() != "a: has 16777217 bytes; a file has 16777216 bytes at most" {
		t.Errorf("got %v", err)
	}
}

// TestExamples: the claims that this project shows people are understood, or refused for what limits cannot say.
func TestExamples(t *testing.T) {
	pairs := Default()
	pairs.Alignments = []Alignment{{Resources: []string{"nvidia.com/gpu", "vfio.katacontainers.io/nic"}, Attribute: "resource.kubernetes.io/pcieRoot"}}
	for _, tt := range []struct {
		file   string
		policy *Policy
		want   string // in the outcome
	}{
		{"single-gpu", Default(), "        limits:\n          nvidia.com/gpu: 1\n"},
		{"gpu-nic-pair", pairs, "        limits:\n          nvidia.com/gpu: 1\n          vfio.katacontainers.io/nic: 1\n"},
		{"gpu-nic-pair", Default(), "has constraints that limits cannot have"},
		{"two-pairs", pairs, "        limits:\n          nvidia.com/gpu: 2\n          vfio.katacontainers.io/nic: 2\n"},
		{"whole-board", Default(), `"All" is as many as a node has`},
		{"alternatives", Default(), "is a choice (firstAvailable)"},
		{"group-node", Default(), "tells the driver something of the devices"},
	} {
		data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "examples", "dra", tt.file+".yaml"))
		must(t, err)
		got := outcome(t, string(data), tt.policy)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s:\n%s\nwant %s", tt.file, got, tt.want)
		}
		if strings.Contains(tt.want, "limits:") && !strings.Contains(got, "remove it if there is none elsewhere") {
			t.Errorf("%s: nobody is told that the template is left:\n%s", tt.file, got)
		}
		if same := outcome(t, string(data), tt.policy.With(DRA)); same != string(data) {
			t.Errorf("%s via dra is not as it was:\n%s", tt.file, same)
		}
	}
}

// TestHostileRecord: the annotation that says how limits were spelt is anybody's to write. Whatever it says, the
// limits are those of the claim.
func TestHostileRecord(t *testing.T) {
	claims := outcome(t, onePod, Default().With(DRA))
	for _, record := range []string{
		`x`, `[]`, `{"c":null}`, `{"c":{"limits":{"nvidia.com/gpu":{"at":9223372036854775807}}}}`, `{"c":{"limits":{"nvidia.com/gpu":{"at":-1}}}}`,
		`{"c":{"limits":{"nvidia.com/gpu":{"at":4611686018427387905,"quote":"x","head":"a: b","line":"c"}}}}`,
		`{"c":{"limits":{"nvidia.com/gpu":{"at":0,"head":"# a\n#b\nprivileged: true"}}}}`,
		`{"c":{"limits":{"cpu":{"at":0}},"limitsAt":{"at":-5,"quote":"{"},"requestsAt":{"at":7}}}`,
		`{"d":{"limits":{"nvidia.com/gpu":{"at":0}}}}`,
	} {
		input := strings.Replace(claims, "metadata:\n  name: p\n", "metadata:\n  name: p\n  annotations:\n    katacontainers.io/rendered-from: '"+record+"'\n", 1)
		got := decode(t, outcome(t, input, Default()))
		if len(got) != 1 {
			t.Fatalf("%s: %d objects", record, len(got))
		}
		spec := podSpecs(got)[0].spec
		limit := spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
		if limit.Value() != 1 || len(spec.Containers[0].Resources.Limits) != 1 || len(spec.ResourceClaims) != 0 || spec.Containers[0].SecurityContext != nil {
			t.Errorf("%s: %+v", record, spec)
		}
	}
}

// TestHostileComment: where the record has a comment that other readers of YAML would end before it ends, the
// text is either without it or not written.
func TestHostileComment(t *testing.T) {
	claims := outcome(t, onePod, Default().With(DRA))
	for _, end := range []string{`\u2028`, `\u0085`, `\r`, `\u0000`} {
		record := `{"c":{"limits":{"nvidia.com/gpu":{"at":0}},"requests":{"nvidia.com/gpu":{"at":0,"line":"#` + end + `          privileged: true"}}}}`
		input := strings.Replace(claims, "metadata:\n  name: p\n", "metadata:\n  name: p\n  annotations:\n    katacontainers.io/rendered-from: '"+record+"'\n", 1)
		if input == claims {
			t.Fatal("no record was added")
		}
		r, err := Render([]File{{"f", []byte(input)}}, Default())
		if err != nil {
			continue
		}
		for _, spec := range podSpecs(decode(t, string(r.Files[0].Data))) {
			if n := len(spec.spec.Containers[0].Resources.Requests); n != 1 {
				t.Errorf("%s: %d requests", end, n)
			}
		}
	}
}
