package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kata-device-plugin/internal/manifest"
)

// TestPlaces: a mark in the text is where the value is said to be. The value is the first one
// that begins with the letters "here".
func TestPlaces(t *testing.T) {
	for name, text := range map[string]string{
		"block":          "apiVersion: v1\nkind: A\nspec:\n  x:\n  - y: here\n",
		"flow":           "{apiVersion: v1, kind: A, spec: {x: [1, here]}}\n",
		"letters":        "apiVersion: v1\nkind: A\nspec: {\"äöü\": here}\n",
		"second":         "apiVersion: v1\nkind: B\n---\napiVersion: v1\nkind: A\nspec: {x: here}\n",
		"kubectl":        "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: B\n- apiVersion: v1\n  kind: A\n  spec:\n    x: here\nkind: List\n",
		"kubectl second": "---\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: A\n  spec:\n    x: here\nkind: List\n",
		"JSON":           "{\"apiVersion\": \"v1\", \"kind\": \"A\",\n \"spec\": {\"ä\": [true, here]}}",
	} {
		t.Run(name, func(t *testing.T) {
			want := at(text)
			set := loaded(t, strings.Replace(text, "here", `"here"`, 1))
			if got, ok := search(set.Objects[len(set.Objects)-1].Value); !ok || got != want {
				t.Errorf("%v, want %v", got, want)
			}
		})
	}
}

// at is where the text has the mark.
func at(text string) string {
	before, _, _ := strings.Cut(text, "here")
	line := strings.Count(before, "\n") + 1
	return fmt.Sprintf("-:%d:%d", line, len([]rune(before[strings.LastIndex(before, "\n")+1:]))+1)
}

func search(v manifest.Value) (string, bool) {
	if v.Text() == "here" {
		return v.Place().String(), true
	}
	for item := range v.Each() {
		if s, ok := search(item); ok {
			return s, true
		}
	}
	for e := range v.Entries() {
		if s, ok := search(e); ok {
			return s, true
		}
	}
	return "", false
}

// TestEmbedded: a text within a text has places in the file where that is possible.
func TestEmbedded(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\ndata:\n  config.json: "
	for name, tt := range map[string]struct{ text, place, path string }{
		"literal":            {head + "|\n    {\"list\": [\n      {\"name\": \"here\"}\n    ]}\n", "-:6:16", ""},
		"literal, kept end":  {head + "|+  # why\n\n     {\"list\": [{\"name\": \"here\"}]}\n\n", "-:6:25", ""},
		"literal of YAML":    {head + "|-\n    list:\n    - name: here\n", "-:6:13", ""},
		"literal with digit": {head + "|1\n    {\"list\": [{\"name\": \"here\"}]}\n", "-:4:3", "list[0].name"},
		"folded":             {head + ">\n    {\"list\":\n    [{\"name\": \"here\"}]}\n", "-:4:3", "list[0].name"},
		"quoted":             {head + "'{\"list\": [{\"name\": \"here\"}]}'\n", "-:4:3", "list[0].name"},
		"JSON":               {`{"apiVersion": "v1", "kind": "ConfigMap", "data": {"config.json": "{\"list\":\n [{\"name\": \"here\"}]}"}}`, "", ""},
		"of kubectl":         {"apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  data:\n    config.json: |\n      {\"list\": [\n       {\"name\": \"here\"}]}\nkind: List\n", "-:8:17", ""},
		"a carriage return":  {strings.ReplaceAll(head+"|\n    {\"list\": [\n      {\"name\": \"here\"}\n    ]}\n", "\n", "\r\n"), "-:6:16", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "JSON" { // a line of JSON cannot go on in the next one
				if _, err := manifest.Load([]string{"-"}, manifest.Options{Stdin: strings.NewReader(strings.ReplaceAll(tt.text, `\n`, "\n"))}); err == nil {
					t.Error("a string that goes over the end of a line is accepted")
				}
				tt.place, tt.path = "-:1:52", "list[0].name"
			}
			v, err := loaded(t, tt.text).Objects[0].Get("data", "config.json").Embedded()
			must(t, err)
			for item := range v.Get("list").Each() {
				if got := item.Get("name"); got.Text() != "here" || got.Place().String() != tt.place || got.Path() != tt.path {
					t.Errorf("%q at %s, %q", got.Text(), got.Place(), got.Path())
				}
				return
			}
			t.Error("there is no list")
		})
	}
}

// TestEmbeddedProblems: so has what is wrong with it.
func TestEmbeddedProblems(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\ndata:\n  a: "
	for text, want := range map[string]string{
		head + "|\n    {\"a\": 1,\n     \"b\": 2,}\n": "-:6:13: is not JSON: a key in quotes is missing",
		head + "|\n    {\"a\": 1}\n    x\n":           "-:6:5: is not JSON: there is something behind the end",
		head + "'{\"a\": }'\n":                        "-:4:3: is not JSON: \"}\" is no value",
		head + "|\n    a:\n    \tb\n":                 "-:6:5: is not YAML",
		head + "[1]\n":                                "-:4:3: is no text",
	} {
		_, err := loaded(t, text).Objects[0].Get("data", "a").Embedded()
		if p, ok := errors.AsType[manifest.Problem](err); !ok || !strings.HasPrefix(p.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestNavigation: what is not there is missing all the way down.
func TestNavigation(t *testing.T) {
	o := loaded(t, "apiVersion: v1\nkind: A\nspec: {a: 1, a: 2, b: [x, null], Sel: {c: yes}, n: null}\n").Objects[0]
	spec := o.Get("spec")
	for what, ok := range map[string]bool{
		"the last of two keys counts":   spec.Get("a").Text() == "2",
		"without regard to case":        spec.GetFold("sel").Get("c").Text() == "yes",
		"with regard to case":           !spec.Get("sel").Exists(),
		"nothing is in what is missing": spec.Get("x", "y", "z").Kind() == manifest.Missing && spec.Get("x").Place() == manifest.Place{},
		"nor in a scalar":               !spec.Get("a", "b").Exists() && spec.Get("a").Len() == 0,
		"null does not exist":           !spec.Get("n").Exists() && spec.Get("n").Kind() == manifest.Null,
		"a list has texts":              strings.Join(spec.Get("b").Texts(), ",") == "x,",
		"a key has a place":             spec.Get("b").KeyPlace().Column == 20 && spec.Get("b").Key() == "b",
		"and a length":                  spec.Get("b").Len() == 2 && spec.Get("Sel").Len() == 1,
	} {
		if !ok {
			t.Errorf("not so: %s", what)
		}
	}
}

// TestForgotten: what repeats an object as it was is not kept.
func TestForgotten(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: A\nmetadata:\n  annotations: {kubectl.kubernetes.io/last-applied-configuration: here, a: b}\n  managedFields: [{manager: m, fieldsV1: {x: here}}]\n",
		`{"apiVersion": "v1", "kind": "A", "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "here", "a": "b"}, "managedFields": [{"manager": "m", "fieldsV1": {"x": "here"}}]}}`,
	} {
		o := loaded(t, text).Objects[0]
		if at, ok := search(o.Value); ok {
			t.Errorf("kept at %s", at)
		}
		if o.Annotation("a").Text() != "b" || o.Get("metadata", "managedFields").Len() != 1 {
			t.Error("too much is forgotten")
		}
	}
}

// TestUnplaced: what a cluster answered has no lines. Values are found by their paths.
func TestUnplaced(t *testing.T) {
	const text = `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "u"},
		"data": {"config.json": "{\"list\": [{\"name\": \"here\"}]}"}}]}`
	set, err := manifest.Load(nil, manifest.Options{Texts: []manifest.Source{{Name: "configmaps", Data: []byte(text), Unplaced: true}}})
	must(t, err)
	data := set.Objects[0].Get("data", "config.json")
	if data.Place() != (manifest.Place{File: "configmap a"}) || data.Path() != "data.config.json" || data.Place().String() != "configmap a" {
		t.Errorf("%s, %q", data.Place(), data.Path())
	}
	v, err := data.Embedded()
	must(t, err)
	for item := range v.Get("list").Each() {
		if name := item.Get("name"); name.Text() != "here" || name.Path() != "data.config.json.list[0].name" {
			t.Errorf("%q at %q", name.Text(), name.Path())
		}
	}
	if set.Inputs[0].Objects != 1 || set.Inputs[0].Name != "configmaps" {
		t.Errorf("%+v", set.Inputs[0])
	}
}
