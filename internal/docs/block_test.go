package docs_test

import (
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/docs"
)

// TestBlocks: code is found where a reader sees it, and nothing else is taken for it.
func TestBlocks(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"indented", "Text.\n\n    make\n    make test\n\nText.\n", "3 make|make test"},
		{"an empty line within", "Text:\n\n    a\n\n    b\n", "3 a||b"},
		{"the rest of a paragraph", "Text\n    that goes on\n", ""},
		{"in a list", "1. One:\n\n       make\n\n   more\n\n2. Two\n", "3 make"},
		{"the text of a list", "1. One\n\n   1. deeper,\n      and further in\n\n      again\n", ""},
		{"behind a list", "- one\n\nText:\n\n    make\n", "5 make"},
		{"a fence", "```console\n$ make\nout\n```\n", "2 console $ make|out"},
		{"a fence in a list", "- one\n\n  ```sh\n  make\n    x\n  ```\n", "4 sh make|  x"},
		{"code in a fence", "```\n    x\n```\n", "2     x"},
		{"a fence that goes on to the end", "```sh\nmake", "2 sh make"},
	} {
		var got []string
		for _, b := range (docs.Page{Text: test.text}).Blocks() {
			parts := []string{string(rune('0' + b.Line))}
			if b.Lang != "" {
				parts = append(parts, b.Lang)
			}
			got = append(got, strings.Join(append(parts, strings.Join(b.Lines, "|")), " "))
		}
		want := slices.DeleteFunc([]string{test.want}, func(s string) bool { return s == "" })
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", test.name, got, want)
		}
	}
}

// TestSteps: a console has what is typed, and what is printed then.
func TestSteps(t *testing.T) {
	b := docs.Block{Lang: "console", Fenced: true, Lines: []string{"before", "$ a \\", "    b", "out", "", "$ c", "$ d", "end"}}
	want := []docs.Step{{Script: "a \\\n    b", Output: "out\n\n"}, {Script: "c"}, {Script: "d", Output: "end\n"}}
	if got := b.Steps(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestParse: what a shell would run is found, as it would see it.
func TestParse(t *testing.T) {
	for script, want := range map[string]string{
		"sudo make test # why":                     "make,test",
		"X=1 make 'a b' \"c d\"":                   "make,a b,c d",
		"a | b && c; d > file":                     "a;b;c;d",
		"until a; do b; done":                      "a;b",
		"cat $(a b)/x":                             "cat,$(a b)/x;a,b",
		"a \\\n  b":                                "a,b",
		"a -p '[\n  {}]'":                          "a,-p,[\n  {}]",
		"rm {a,b}.json; cat <<EOF\nmake tset\nEOF": "rm,{a,b}.json;cat",
	} {
		commands, err := docs.Parse("here", script)
		must(t, err)
		var got []string
		for _, c := range commands {
			got = append(got, strings.Join(c.Args, ","))
		}
		if strings.Join(got, ";") != want {
			t.Errorf("%q: got %q, want %q", script, strings.Join(got, ";"), want)
		}
	}
}

// FuzzPage: no text makes the reader fail, and code is a part of the text.
func FuzzPage(f *testing.F) {
	f.Add("# A\n\n    make\n\n```console\n$ a\nb\n```\n- x\n\n      y\n")
	f.Add("```")
	f.Add("1. \n\n       \n")
	f.Fuzz(func(t *testing.T, text string) {
		p := docs.Page{Name: "p", Text: text}
		lines := strings.Split(text, "\n")
		for _, b := range p.Blocks() {
			for i, line := range b.Lines {
				if !strings.HasSuffix(lines[b.Line-1+i], line) {
					t.Errorf("line %d of the block is %q, and the page has %q", i, line, lines[b.Line-1+i])
				}
			}
			b.Steps()
		}
		p.Anchors()
		p.Links()
	})
}
