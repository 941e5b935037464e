package nicconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
)

type malformed struct{ name, config, problem string }

// readMalformed reads the table: a line "== name", the configuration, a line "-- problem".
func readMalformed(t testing.TB) (head string, all []malformed) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "malformed.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var before, config strings.Builder
	for line := range strings.Lines(string(data)) {
		last := len(all) - 1
		name, begins := strings.CutPrefix(line, "== ")
		problem, ends := strings.CutPrefix(line, "-- ")
		switch {
		case begins:
			config.Reset()
			all = append(all, malformed{name: strings.TrimSpace(name)})
		case ends:
			all[last].config, all[last].problem = config.String(), strings.TrimSpace(problem)
		case last < 0:
			before.WriteString(line)
		default:
			config.WriteString(line)
		}
	}
	return before.String(), all
}

// TestMalformed: one mistake is one problem, with its place and what to do.
func TestMalformed(t *testing.T) {
	head, all := readMalformed(t)
	if len(all) < 50 {
		t.Errorf("only %d configurations", len(all))
	}
	seen := map[string]string{}
	var out strings.Builder
	out.WriteString(head)
	for _, m := range all {
		c, err := Parse("config.json", []byte(m.config), Options{})
		problems, ok := errors.AsType[Problems](err)
		if !ok || len(problems) != 1 || c != nil {
			t.Errorf("%s: want one problem, got %+v and\n%v", m.name, c, err)
			continue
		}
		got := problems[0].Error()
		if fmt.Fprintf(&out, "== %s\n%s-- %s\n", m.name, m.config, got); got != m.problem && !golden.FlagUpdate() {
			t.Errorf("%s:\ngot  %s\nwant %s", m.name, got, m.problem)
		}
		if p := problems[0]; p.Line == 0 || p.Column == 0 || p.Remedy == "" || p.What == "" || p.File != "config.json" {
			t.Errorf("%s: %+v lacks something", m.name, p)
		}
		if other, ok := seen[m.config]; ok {
			t.Errorf("%s is the same as %s", m.name, other)
		}
		seen[m.config] = m.name
	}
	if golden.FlagUpdate() {
		if err := os.WriteFile(filepath.Join("testdata", "malformed.txt"), []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAllAtOnce: a file with every mistake gets every problem, in the order of the file.
func TestAllAtOnce(t *testing.T) {
	const config = `{
  "resourceList": [
    {"resourceName": "a b", "selectors": {"vendors": ["15b", "8086", 7], "isRdma": 1}},
    {"resourcePrefix": "X", "selectors": [{}, {"pfNames": ["p0#2-1"], "x": 1}]},
    7
  ],
  "configList": [{"resourceName": "b", "rdmaHcaMax": -1, "selectors": {"linkTypes": ["wifi"]}}],
  "list": []
}`
	_, err := Parse("c", []byte(config), Options{Prefix: "-"})
	want := []string{
		`--resource-prefix: "-" is not a DNS name`,
		`c:3:22: resourceList[0].resourceName: "a b" is not a name`,
		`c:3:55: resourceList[0].selectors.vendors[0]: "15b" is not a number`,
		`c:3:70: resourceList[0].selectors.vendors[2]: 7 is not a string`,
		`c:3:84: resourceList[0].selectors.isRdma: 1 is not true or false`,
		`c:4:5: resourceList[1].resourceName: is missing`,
		`c:4:24: resourceList[1].resourcePrefix: "X" is not a DNS name`,
		`c:4:43: resourceList[1].selectors[0]: {...} selects nothing`,
		`c:4:60: resourceList[1].selectors[1].pfNames[0]: "p0#2-1" has the range "2-1", which ends before it begins; write 1-2`,
		`c:4:71: resourceList[1].selectors[1].x: "x" is not a known key`,
		`c:5:5: resourceList[2]: 7 is not an object`,
		`c:7:54: configList[0].rdmaHcaMax: -1 is out of range`,
		`c:7:86: configList[0].selectors.linkTypes[0]: "wifi" is not a link type`,
		`c:8:3: list: "list" is not a known key`,
	}
	got := strings.Split(err.Error(), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d problems, want %d:\n%v", len(got), len(want), err)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
	for range 20 {
		if _, again := Parse("c", []byte(config), Options{Prefix: "-"}); again.Error() != err.Error() {
			t.Fatalf("not the same every time: %v", again)
		}
	}
}

// TestLimits: what would cost too much is refused before it does.
func TestLimits(t *testing.T) {
	pools := func(n int) string {
		return `{"resourceList": [` + strings.Repeat(`7,`, n-1) + `7]}`
	}
	for _, tt := range []struct{ what, config, want string }{
		{"size", strings.Repeat(" ", maxBytes+1), "c: has 262145 bytes"},
		{"depth in JSON", strings.Repeat("[", 40) + strings.Repeat("]", 40), "c:1:18: is nested more than 16 deep"},
		{"depth in YAML", "a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "c:1:20: is nested more than 16 deep"},
		{"depth beyond YAML's", "a: " + strings.Repeat("[", 4000), "c:1:68: is not YAML: exceeded max depth of 64"},
		{"depth beyond JSON's", strings.Repeat("[", 20_000), "c:1:10001: is not JSON: invalid character '[' exceeded max depth"},
		{"values in JSON", pools(maxValues), "c:1:40013: has more than 20000 values"},
		{"values in YAML", "a: [" + strings.Repeat("x,", 10_000) + "]", "c: has too many lines, or lists in brackets, for YAML"},
		{"UTF-16", "\xff\xfea\x00", "c:1:1: byte 0xff is not UTF-8"},
		{"Latin 1", "a: 1\nb: caf\xe9\n", "c:2:7: byte 0xe9 is not UTF-8"},
		{"control character", "{\n  \"a\x00\": 1}", "c:2:5: control character U+0000"},
		{"what YAML cannot print", "a: \ufffe", "c: is not YAML: control characters are not allowed"},
		{"unknown anchor", "a: *b", "c:1:4: is not YAML: unknown anchor 'b' referenced"},
		{"a broken second document", "a: 1\n---\nb: [", "c:4:1: is not YAML"},
	} {
		_, err := Parse("c", []byte(tt.config), Options{})
		problems, ok := errors.AsType[Problems](err)
		if !ok || len(problems) != 1 || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.what, err, tt.want)
		}
	}
	_, err := Parse("c", []byte(pools(15_000)), Options{})
	problems, _ := errors.AsType[Problems](err)
	if len(problems) != maxProblems+1 || problems[maxProblems].Error() != "c: 14900 more problems are not listed; mend these first" {
		t.Errorf("%d problems, the last is %v", len(problems), problems[len(problems)-1])
	}
	_, err = Parse("c", []byte(`{"`+strings.Repeat("ä", 1000)+`": 1`+strings.Repeat("0", 1000)+`}`), Options{})
	if len(err.Error()) > 800 {
		t.Errorf("a problem of %d bytes: %v", len(err.Error()), err)
	}
}

func TestProblems(t *testing.T) {
	_, err := Parse("c", []byte(`{"a" 1}`), Options{})
	if _, ok := errors.AsType[*json.SyntaxError](err); !ok {
		t.Errorf("%v does not wrap what the decoder said", err)
	}
	if p, ok := errors.AsType[Problem](err); !ok || p.Line != 1 || p.Column != 6 {
		t.Errorf("%v is no problem", err)
	}
	_, err = Parse("c", nil, Options{Prefix: "a/b"})
	want := Problems{{Path: "--resource-prefix", Value: `"a/b"`, What: "is not a DNS name in lower case",
		Remedy: "use labels of lower-case letters, digits and hyphens with dots between them, such as example.com"}}
	if diff := cmp.Diff(want, err); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := err.Error(); got != "--resource-prefix: "+want[0].Value+" "+want[0].What+"; "+want[0].Remedy {
		t.Error(got)
	}
}
