package manifest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/manifest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// loaded loads a text from the standard input.
func loaded(t testing.TB, text string, complete ...string) *manifest.Set {
	t.Helper()
	set, err := manifest.Load([]string{"-"}, manifest.Options{Stdin: strings.NewReader(text), Complete: complete})
	must(t, err)
	return set
}

// names lists the objects of a set.
func names(set *manifest.Set) []string {
	var all []string
	for _, o := range set.Objects {
		all = append(all, o.Kind+" "+o.Namespace+"/"+o.Name)
	}
	return all
}

// TestDocuments: what becomes an object, and what does not.
func TestDocuments(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                 {"", nil},
		"comments":                {"# a\n---\n# b\n---\n", nil},
		"a directive":             {"%YAML 1.2\n---\napiVersion: v1\nkind: Pod\n", []string{"Pod /"}},
		"two documents":           {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n--- # next\napiVersion: v1\nkind: Node\nmetadata: {name: n}\n", []string{"Pod /a", "Node /n"}},
		"carriage returns":        {"apiVersion: v1\r\nkind: Pod\r\nmetadata:\r\n  name: a\r\n---\r\napiVersion: v1\r\nkind: Pod\r\n", []string{"Pod /a", "Pod /"}},
		"hyphens that are text":   {"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    ---\n    b\n", []string{"ConfigMap /"}},
		"a byte order mark":       {"\ufeffapiVersion: v1\nkind: Pod\n", []string{"Pod /"}},
		"settings of a chart":     {"image: x\nreplicas: 2\n", nil},
		"a list":                  {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n- {apiVersion: v1, kind: Node, metadata: {name: n}}\n", []string{"Pod /a", "Node /n"}},
		"as kubectl prints it":    {"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n\nkind: List\nmetadata:\n  resourceVersion: \"\"\n", []string{"Pod /a", "Node /n"}},
		"a list of one kind":      {"apiVersion: v1\nkind: PodList\nitems:\n- metadata: {name: a, namespace: b}\n", []string{"Pod b/a"}},
		"a kind that ends so":     {"apiVersion: x/v1\nkind: AllowList\nmetadata: {name: a}\n", []string{"AllowList /a"}},
		"JSON":                    {`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}`, []string{"Pod /a"}},
		"JSON, one after another": {"{\"apiVersion\": \"v1\", \"kind\": \"Pod\"}\n{\"apiVersion\": \"v1\", \"kind\": \"Node\"}", []string{"Pod /", "Node /"}},
		"YAML in braces":          {"{apiVersion: v1, kind: Pod, metadata: {name: a}}", []string{"Pod /a"}},
		"secrets":                 {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, data: {a: b}}\n- {apiVersion: v1, kind: Pod}\n", []string{"Pod /"}},
		"a list of secrets":       {"apiVersion: v1\nkind: SecretList\nitems:\n- data: {a: b}\n", nil},
		"an alias":                {"apiVersion: v1\nkind: Pod\nmetadata: &m {name: a}\nspec: {x: *m}\n", []string{"Pod /a"}},
		"merged maps":             {"x: &x {name: a, namespace: b}\napiVersion: v1\nkind: Pod\nmetadata: {<<: *x, namespace: c}\n", []string{"Pod c/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, names(loaded(t, tt.text))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPaths: directories are searched, and what is in them by the name of the file.
func TestPaths(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{
		"a.yaml": "apiVersion: v1\nkind: Pod\n", "b/c.YML": "apiVersion: v1\nkind: Node\n", "b/d.json": `{"apiVersion": "v1", "kind": "Service"}`,
		"e.txt": "{", ".git/f.yaml": "{", "g.yaml.bak": "{",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	}
	set, err := manifest.Load([]string{dir}, manifest.Options{})
	must(t, err)
	if diff := cmp.Diff([]string{"Pod /", "Node /", "Service /"}, names(set)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	sum := sha256.Sum256([]byte("apiVersion: v1\nkind: Pod\n"))
	if in := set.Inputs[0]; in.Name != filepath.Join(dir, "a.yaml") || in.Bytes != 25 || in.Objects != 1 || in.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("%+v", in)
	}
	if set, err = manifest.Load([]string{filepath.Join(dir, "e.txt")}, manifest.Options{}); err == nil {
		t.Errorf("a file that is named is read whatever its name is: %v", names(set))
	}
}

// TestUnusable: what cannot be read says where, and leaves no set behind.
func TestUnusable(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for file, text := range map[string]string{
		"tab.yaml": "apiVersion: v1\nkind: Pod\nmetadata:\n\tname: a\n", "comma.json": "{\n  \"a\": 1,\n}", "end.json": `{"a": "b`,
		"alias.yaml": "a: &a [*a]\n", "deep.json": strings.Repeat("[", 200), "large.yaml": strings.Repeat("# comment\n", 200),
		"second.yaml": "apiVersion: v1\nkind: Pod\n---\nkind: [\n", "two.json": `{"a": 1} x`, "deep.yaml": strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	laughs := "a0: &a0 [1, 2]\n"
	for i := 1; i < 30; i++ { // each line stands for twice the one before
		laughs += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	must(t, os.WriteFile("laughs.yaml", []byte(laughs), 0o600))
	for _, tt := range []struct{ path, want string }{
		{"laughs.yaml", "laughs.yaml:18:18: is too large: its aliases"},
		{"absent.yaml", "absent.yaml: look for input: "},
		{"tab.yaml", "tab.yaml:4:"},
		{"comma.json", `comma.json:3:1: is not JSON: a key in quotes is missing`},
		{"end.json", "end.json:1:7: is not JSON: a string does not end"},
		{"alias.yaml", "alias.yaml:1:8: is not YAML that ends"},
		{"deep.json", "deep.json:1:102: is nested more than 100 deep"},
		{"deep.yaml", "deep.yaml:1:"},
		{"large.yaml", "large.yaml: is larger than 1000 bytes"},
		{"second.yaml", "second.yaml:5:1: is not YAML"},
		{"two.json", `two.json:1:10: is not JSON: "x" is no value`},
		{"-", "-: there is no standard input"},
	} {
		set, err := manifest.Load([]string{tt.path}, manifest.Options{MaxBytes: 1000})
		if err == nil || set != nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.path, err, tt.want)
		}
		if p, ok := errors.AsType[manifest.Problem](err); !ok || p.File != tt.path {
			t.Errorf("%s: %#v", tt.path, p)
		}
	}
	_, err := manifest.Load([]string{"tab.yaml", "comma.json", "second.yaml"}, manifest.Options{})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want all three: %v", err)
	}
	_, err = manifest.Load([]string{"-"}, manifest.Options{Stdin: iotest.ErrReader(io.ErrUnexpectedEOF)})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// TestFromCluster: what the API server has had is told from what a person wishes.
func TestFromCluster(t *testing.T) {
	for text, want := range map[string]bool{
		"metadata: {name: a}": false,
		"metadata: {name: a, creationTimestamp: null}\nstatus: {}": false,
		"metadata: {name: a, uid: u}":                              true,
		"metadata: {name: a, resourceVersion: \"1\"}":              true,
		"metadata: {name: a}\nstatus: {phase: Running}":            true,
	} {
		set := loaded(t, "apiVersion: v1\nkind: Pod\n"+text+"\n")
		if got := set.Objects[0].FromCluster; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestComplete: of which kinds the input has everything.
func TestComplete(t *testing.T) {
	pods := func(one, two string) string {
		return "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a, namespace: x" + one + "}}\n- {apiVersion: v1, kind: Pod, metadata: {name: b, namespace: " + two + "}}\n"
	}
	with := func(kind, name string) string {
		return "- {apiVersion: v1, kind: " + kind + ", metadata: {name: " + name + ", uid: w}}\n"
	}
	const list = "apiVersion: v1\nkind: List\nitems:\n"
	for name, tt := range map[string]struct {
		text, kind string
		complete   []string
		want       bool
	}{
		"node/n pod/p":        {list + with("Node", "n") + with("Pod", "p, namespace: x"), "Node", nil, false},
		"node/n class/c":      {list + with("Node", "n") + with("DeviceClass", "c"), "Node", nil, false},
		"nodes,pods -A":       {pods(", uid: u", "y, uid: v") + with("Node", "n"), "Node", nil, true},
		"pods,configmaps -A":  {pods(", uid: u", "y, uid: v") + with("ConfigMap", "c, namespace: x"), "ConfigMap", nil, false},
		"get nodes":           {list + with("Node", "n"), "Node", nil, true},
		"of two namespaces":   {pods(", uid: u", "y, uid: v"), "Pod", nil, true},
		"of one namespace":    {pods(", uid: u", "x, uid: v"), "Pod", nil, false},
		"written by a person": {pods("", "y"), "Pod", nil, false},
		"no list":             {"apiVersion: v1\nkind: Node\nmetadata: {name: n, uid: u}\n", "Node", nil, false},
		"nodes":               {"apiVersion: v1\nkind: NodeList\nitems:\n- {metadata: {name: n, uid: u}}\n", "Node", nil, true},
		"a page of nodes":     {"apiVersion: v1\nkind: NodeList\nmetadata: {continue: abc}\nitems:\n- {metadata: {name: n, uid: u}}\n", "Node", nil, false},
		"the last but 5":      {"apiVersion: v1\nkind: NodeList\nmetadata: {remainingItemCount: 5}\nitems:\n- {metadata: {name: n, uid: u}}\n", "Node", nil, false},
		"all in one page":     {"apiVersion: v1\nkind: NodeList\nmetadata: {resourceVersion: '9', continue: ''}\nitems:\n- {metadata: {name: n, uid: u}}\n", "Node", nil, true},
		"an empty list":       {"apiVersion: v1\nkind: NodeList\nitems: []\n", "Node", nil, false},
		"as the user says":    {"", "ConfigMap", []string{"configmaps"}, true},
		"of one":              {"", "Node", []string{"Node"}, true},
		"irregular":           {"", "DeviceClass", []string{"deviceclasses"}, true},
		"with its group":      {"", "NetworkAttachmentDefinition", []string{"network-attachment-definitions.k8s.cni.cncf.io"}, true},
		"short":               {"", "NetworkAttachmentDefinition", []string{"net-attach-def"}, true},
		"another one":         {"", "Node", []string{"pods"}, false},
		"policies":            {"", "NicClusterPolicy", []string{"nicclusterpolicies"}, true},
	} {
		set := loaded(t, tt.text, tt.complete...)
		if got := set.Complete(tt.kind); got != tt.want {
			t.Errorf("%s: %v, with %v", name, got, set.CompleteKinds())
		}
	}
	dir := filepath.Join(t.TempDir(), "must-gather", "cluster-scoped-resources", "core", "nodes")
	must(t, os.MkdirAll(dir, 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "n.yaml"), []byte("apiVersion: v1\nkind: Node\nmetadata: {name: n, uid: u}\n"), 0o600))
	set, err := manifest.Load([]string{filepath.Dir(filepath.Dir(filepath.Dir(dir)))}, manifest.Options{})
	must(t, err)
	if !set.Complete("Node") {
		t.Error("a must-gather has all nodes")
	}
}

// TestTemplates: what is the source of a template is no object, and no error.
func TestTemplates(t *testing.T) {
	const head = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: "
	for text, line := range map[string]int{
		head + "a\n":                                                      0,
		head + "{{ .Release.Name }}\n":                                    1,
		head + "a-{{ .x }}\n":                                             1,
		head + "\"{{ .x }}\"\n":                                           1,
		"{{- if .x }}\n" + head + "a\n{{- end }}\n":                       1,
		head + "a\n---\n{{ include \"x\" . }}\n":                          6,
		head + "a\nspec:\n  replicas: {{ .x }}\n":                         1,
		head + "a\nspec: {args: [\"{{.metadata.name}}\"]}\n":              0,
		head + "a\nspec:\n  text: |\n    {{ a template of its own }}\n":   0,
		head + "a # {{ .x }}\n":                                           0,
		head + "a\n  uid: u\nspec: {image: \"{{ kept as it is }}\"}\n":    0,
		head + "a\n  annotations: {a: \"{{ half\"}\n":                     0,
		"apiVersion: v1\nkind: ConfigMap\ndata: {a: \"{{ .Values }}\"}\n": 0,
	} {
		set := loaded(t, text)
		at := 0
		if set.Inputs[0].Template != nil {
			at = set.Inputs[0].Template.Line
		}
		if at != line {
			t.Errorf("%q: a template at line %d, want %d", text, at, line)
		}
	}
}
