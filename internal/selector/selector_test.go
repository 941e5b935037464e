package selector_test

import (
	"strings"
	"testing"

	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/selector"
)

const gpu = `{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}, "resource.kubernetes.io/numaNode": {"int": 1}},
	"capacity": {"memory": {"value": "80Gi"}}}`

func TestTakes(t *testing.T) {
	for _, c := range []struct {
		expression string
		want       bool
		err        string
	}{
		{`device.driver == "x.example.com"`, true, ""},
		{`device.driver == "y.example.com"`, false, ""},
		{`device.attributes["x.example.com"].type == "gpu" || device.driver == "y.example.com"`, true, ""},
		{`device.attributes["resource.kubernetes.io"].numaNode in [0, 2]`, false, ""},
		{`device.capacity["x.example.com"].memory.compareTo(quantity("40Gi")) > 0`, true, ""},
		{`has(device.attributes["x.example.com"].model) && device.attributes["x.example.com"].model == "a"`, false, ""},
		{`device.attributes["x.example.com"].model == "a"`, false, "evaluate selector: "},
	} {
		s, err := selector.Compile(c.expression)
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		d, err := selector.NewDevice("x.example.com", []byte(gpu))
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Takes(t.Context(), d)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, %v; want %v, %q", c.expression, got, err, c.want, c.err)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, expression := range []string{"", "device.", `device.driver`, `device.nothing == "a"`} {
		if _, err := selector.Compile(expression); err == nil || !strings.HasPrefix(err.Error(), "compile selector: ") {
			t.Errorf("%q: %v", expression, err)
		}
	}
	if _, err := selector.NewDevice("x.example.com", []byte(`{"attributes": {"a": 1}}`)); err == nil ||
		!strings.HasPrefix(err.Error(), "read device of driver x.example.com: ") {
		t.Error(err)
	}
}

// FuzzCompile: whatever is written as a selector, it is refused, or says something of a device.
func FuzzCompile(f *testing.F) {
	f.Add(`device.driver == "x"`, gpu)
	f.Add(`device.attributes["a"].b`, `{"attributes": {"a/b": {"bool": true}}}`)
	f.Add(`[device].map(d, d).exists(d, true)`, "null")
	f.Fuzz(func(t *testing.T, expression, text string) {
		s, err := selector.Compile(expression)
		if err != nil {
			return
		}
		d, err := selector.NewDevice("x", []byte(text))
		if err != nil {
			return
		}
		if ok, err := s.Takes(t.Context(), d); ok && err != nil {
			t.Errorf("%q takes %s, and fails: %v", expression, text, err)
		}
	})
}

// TestReadRefused: the place is that of the expression, also where one of the same text was read before.
func TestReadRefused(t *testing.T) {
	r := selector.NewReader()
	for text, want := range map[string]string{
		"- cel: {expression: 'true'}\n- cel: {expression: 'device.'}\n": "in.yaml:2:21: compile selector: ",
		"\n- cel: {expression: 'device.'}\n":                            "in.yaml:2:21: compile selector: ",
		"- cel: {}\n":                                                   "in.yaml:1:3: compile selector: ",
		"- other: x\n":                                                  "in.yaml:1:3: compile selector: ",
	} {
		list, err := manifest.Parse("in.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Read(list); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
