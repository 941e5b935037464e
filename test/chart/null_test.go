package chart

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// TestNull: a value that is set to null is taken away, and either the chart does without it or it says which one
// is missing. Neither is a template's own error, or a nil in an object.
func TestNull(t *testing.T) {
	c, err := Load(chartDir)
	must(t, err)
	paths := below("", c.Values)
	if len(paths) < 100 {
		t.Fatalf("only %d values were found", len(paths))
	}
	for _, path := range paths {
		key, _, _ := strings.Cut(path, ".")
		enabled := only(key, "")
		if key == "nicDevicePlugin" {
			enabled = only(key, "config: '{}'")
		}
		made, err := try(t, usual(with(t, enabled, path)))
		if err != nil {
			last := path[strings.LastIndex(path, ".")+1:]
			if text := err.Error(); !strings.Contains(text, "missing property '"+last+"'") {
				t.Errorf("%s: null: the error does not help: %v", path, err)
			}
			continue
		}
		text, err := json.Marshal(made.Objects)
		must(t, err)
		if strings.Contains(string(text)+made.Notes, "<nil>") {
			t.Errorf("%s: null: something that is rendered has a nil", path)
		}
	}
}

// TestNullInNotes: a component alone has its notes, whatever of it was taken away.
func TestNullInNotes(t *testing.T) {
	for _, component := range components() {
		render(t, usual(only(component.key, "nodeSelector: null, affinity: null, tolerations: null, resources: null")))
	}
}

// below are the paths of all values. What is in Kubernetes' own objects is not the chart's affair.
func below(above string, values map[string]any) []string {
	var all []string
	for key, value := range values {
		path := strings.TrimPrefix(above+"."+key, ".")
		all = append(all, path)
		switch key {
		case "nodeSelector", "affinity", "resources", "updateStrategy", "labels":
			continue
		}
		if group, ok := value.(map[string]any); ok {
			all = append(all, below(path, group)...)
		}
	}
	return all
}

// with are values with one of them set to null.
func with(t *testing.T, text, path string) string {
	t.Helper()
	values, err := Values(text)
	must(t, err)
	at := values
	keys := strings.Split(path, ".")
	for _, key := range keys[:len(keys)-1] {
		next, _ := at[key].(map[string]any)
		next = maps.Clone(next)
		if next == nil {
			next = map[string]any{}
		}
		at[key] = next
		at = next
	}
	at[keys[len(keys)-1]] = nil
	made, err := json.Marshal(values)
	must(t, err)
	return string(made)
}
