package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../../.."

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestUpToDate: what is in the repository is what would be written.
func TestUpToDate(t *testing.T) {
	must(t, run([]string{"-check", root}, &bytes.Buffer{}))
}

// TestStaleIsFound: -check complains about a file that is another, or is not there, and writes nothing;
// without it both are put right.
func TestStaleIsFound(t *testing.T) {
	dir := t.TempDir()
	for _, name := range append(shared(), chart+"/values.yaml", chart+"/README.md.gotmpl") {
		text, err := os.ReadFile(filepath.Join(root, name))
		must(t, err)
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	must(t, os.Mkdir(filepath.Join(dir, chart, "files"), 0o755))
	must(t, run([]string{dir}, &bytes.Buffer{}))
	must(t, run([]string{"-check", dir}, &bytes.Buffer{}))
	readme, rules := filepath.Join(dir, chart, "README.md"), filepath.Join(dir, chart, "files/admission.yaml")
	must(t, os.WriteFile(readme, []byte("old"), 0o600))
	must(t, os.Remove(rules))
	err := run([]string{"-check", dir}, &bytes.Buffer{})
	for _, want := range []string{"README.md is out of date", "files/admission.yaml is out of date", "make chart-docs"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	if _, err := os.Stat(rules); err == nil {
		t.Error("-check has written")
	}
	must(t, run([]string{dir}, &bytes.Buffer{}))
	must(t, run([]string{"-check", dir}, &bytes.Buffer{}))
}

// TestMistakes: who writes values.yaml is told the line, the value and what to do.
func TestMistakes(t *testing.T) {
	for _, test := range []struct{ name, values, want string }{
		{"no mapping", "- a", "line 1: there is no mapping"},
		{"not YAML", "a: [", "line 1"},
		{"no description", "# a\na: 1x\n\nb: 2x\n", "line 4: b has no description"},
		{"empty group", "# a\na: {}\n", "line 2: a is empty: say by @type"},
		{"list", "g:\n  # a\n  a: []\n", "line 3: g.a is a list: say by @type or @flags"},
		{"annotation", "# a\n# @typo labels\na: {}\n", "line 3: a: @typo is not known"},
		{"two annotations", "# a\n# @type labels\n# @pattern x\na: x\n", "more than one of"},
		{"type", "# a\n# @type Labels\na: {}\n", "line 3: a: @type Labels is not known: add it to kinds()"},
		{"default without a type", "g:\n  # a\n  a: 1\n", "line 3: g.a: no schema for a default of type int"},
	} {
		values, err := parse([]byte(test.values))
		if err == nil {
			_, err = writeSchema(values)
		}
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
	if err := run(nil, &bytes.Buffer{}); err == nil {
		t.Error("it runs without the root")
	}
}

// FuzzParse: whatever is in values.yaml, there is a schema or an error.
func FuzzParse(f *testing.F) {
	f.Add("# a\n# @enum x y\na: x\nb:\n  # c\n  # @type Affinity\n  c: {}\n")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := parse([]byte(text))
		if err != nil {
			return
		}
		schema, err := writeSchema(values)
		if err == nil && !json.Valid(schema) {
			t.Errorf("the schema is no JSON:\n%s", schema)
		}
	})
}

// TestSchemaIsStrict: wherever the schema knows the keys of an object, it takes no others.
func TestSchemaIsStrict(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, chart, "values.schema.json"))
	must(t, err)
	var top any
	must(t, json.Unmarshal(text, &top))
	objects := 0
	var walk func(path string, v any)
	walk = func(path string, v any) {
		m, _ := v.(map[string]any)
		if m["properties"] != nil && m["type"] == "object" {
			objects++
			if m["additionalProperties"] != false {
				t.Errorf("%s takes keys that it does not know", path)
			}
		}
		for key, below := range m {
			walk(path+"/"+key, below)
		}
	}
	walk("", top)
	if objects < 30 {
		t.Errorf("only %d objects were looked at", objects)
	}
}

// TestFlagsAreThePrograms: extraArgs takes no flag that the document of the program does not have.
func TestFlagsAreThePrograms(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, chart, "values.yaml"))
	must(t, err)
	values, err := parse(text)
	must(t, err)
	seen := 0
	for key, doc := range map[string]string{"nicDevicePlugin": "nic.md", "draDriver": "dra.md", "exporter": "exporter.md"} {
		table, err := os.ReadFile(filepath.Join(root, "docs", doc))
		must(t, err)
		at := slices.IndexFunc(values, func(v *value) bool { return v.key == key })
		for _, v := range values[at].children {
			for _, flag := range v.flags {
				seen++
				flag = strings.TrimSuffix(flag, "=")
				if !regexp.MustCompile("(?m)^\\| `--" + flag + "` \\|").Match(table) {
					t.Errorf("%s takes --%s, and docs/%s has no such flag", v.path, flag, doc)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no value takes flags")
	}
}
