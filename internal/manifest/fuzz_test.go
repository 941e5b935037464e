package manifest_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"kata-device-plugin/internal/manifest"
)

// FuzzLoad: whatever the input is, there is a set or a problem with a place, and everything in
// the set is within the text.
func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: |\n    {\"b\": [1, \"c\"]}\n", "apiVersion: v1\nitems:\n- a: b\nkind: List\n", "{{ x }}", "--- a\n--- b\n",
		"{\"apiVersion\": \"v1\", \"kind\": \"A\", \"x\": \"\\u00e4\"}", "a: &a {b: *a}\n", "x: &x {a: b}\ny: {<<: [*x, *x]}\n", "? [a]\n: b\n", "a: |2-\n   b\n", "\ufeff# a\r\n---\r\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := manifest.Load([]string{"-"}, manifest.Options{Stdin: strings.NewReader(text)})
		if err != nil {
			if set != nil || strings.ContainsFunc(err.Error(), func(c rune) bool { return c < ' ' && c != '\n' }) {
				t.Errorf("%q", err)
			}
			return
		}
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u0085") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029") + 1
		for _, o := range set.Objects {
			walk(t, o.Value, lines, 0)
		}
	})
}

func walk(t *testing.T, v manifest.Value, lines, depth int) {
	if depth > 12 { // aliases may repeat a part many times
		return
	}
	if p := v.Place(); p.Line < 1 || p.Line > lines || p.Column < 1 {
		t.Errorf("%s is outside of %d lines", p, lines)
	}
	if e, err := v.Embedded(); err == nil && e.Kind() != manifest.Missing && depth < 10 {
		walk(t, e, lines, 10)
	}
	for item := range v.Each() {
		walk(t, item, lines, depth+4)
	}
	for e := range v.Entries() {
		walk(t, e, lines, depth+4)
	}
}

// FuzzJSON: the reader accepts what encoding/json does, and reads the same out of it.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a": [1, -2.5e3, true, null, "\u00e4\n\ud834\udd1e"]}`, `[]`, `{}`, ` 1 `, `{"a":1,}`, `[1 2]`, `"\x"`, `nul`, `01`, "\"\x80\"", `[,1]`, `{"a" 1}`, `{1:2}`, `[[]`, `"a`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		begin := bytes.TrimLeft(data, " \t\r\n")
		if len(begin) == 0 || begin[0] != '{' && begin[0] != '[' || bytes.Count(data, []byte("[")) > 90 || bytes.Count(data, []byte("{")) > 90 {
			return
		}
		got, err := manifest.Parse("x", data)
		if valid := json.Valid(data); valid != (err == nil) {
			t.Fatalf("valid %v, and %v", valid, err)
		}
		if err != nil || !utf8.Valid(data) {
			return
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var want any
		must(t, d.Decode(&want))
		same(t, got, want)
	})
}

func same(t *testing.T, got manifest.Value, want any) {
	t.Helper()
	ok := false
	switch want := want.(type) {
	case nil:
		ok = got.Kind() == manifest.Null
	case bool:
		ok = got.Kind() == manifest.Bool && (got.Text() == "true") == want
	case json.Number:
		ok = got.Kind() == manifest.Number && got.Text() == want.String()
	case string:
		ok = got.Kind() == manifest.Text && got.Text() == want
	case []any:
		i := 0
		for item := range got.Each() {
			same(t, item, want[i])
			i++
		}
		ok = got.Kind() == manifest.List && i == len(want)
	case map[string]any:
		ok = got.Kind() == manifest.Map
		for key, v := range want {
			if key != "fieldsV1" && !strings.HasPrefix(key, "kubectl.kubernetes.io/") {
				same(t, got.Get(key), v)
			}
		}
	}
	if !ok {
		t.Errorf("%v %q, want %v", got.Kind(), got.Text(), want)
	}
}
