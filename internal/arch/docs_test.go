package arch

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/nicconfig"
)

// TestFindingsDocumented: who searches for an ID finds what it means and what to do.
func TestFindingsDocumented(t *testing.T) {
	doc := read(t, "docs/findings.md")
	for _, k := range finding.Catalogue() {
		for _, want := range []string{"### " + k.ID, k.Title} {
			if !strings.Contains(doc, want) {
				t.Errorf("docs/findings.md has nothing about %q of %s", want, k.ID)
			}
		}
	}
	for _, id := range regexp.MustCompile(`(?m)^### ([A-Z]+[0-9]+)`).FindAllStringSubmatch(doc, -1) {
		if !slices.ContainsFunc(finding.Catalogue(), func(k finding.Kind) bool { return k.ID == id[1] }) {
			t.Errorf("docs/findings.md explains %s, which is in no catalogue", id[1])
		}
	}
}

// TestBlockingDocumented: docs/findings.md lists what makes a program not ready.
func TestBlockingDocumented(t *testing.T) {
	var want []string
	for _, k := range finding.Catalogue() {
		if k.Blocks {
			want = append(want, k.ID)
		}
	}
	list := regexp.MustCompile(`These make the plugin not ready: ([^.]*)\.`).FindStringSubmatch(read(t, "docs/findings.md"))
	if list == nil {
		t.Fatal("docs/findings.md has no such list")
	}
	got := strings.Split(strings.Join(strings.Fields(list[1]), " "), ", ")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("docs/findings.md lists %v, and the catalogue has %v", got, want)
	}
}

// TestConfigurationDocumented: every key of the NIC plugin's file, and every flag, is in its
// document.
func TestConfigurationDocumented(t *testing.T) {
	doc := read(t, "docs/nic.md")
	keys := literals(t, "internal/nicconfig", field("key")) // as in rule{key: "vendors"}
	if len(keys) < 30 || !slices.Contains(keys, "pfNames") {
		t.Fatalf("found only the keys %v", keys)
	}
	for _, key := range keys {
		if !strings.Contains(doc, "`"+key+"`") {
			t.Errorf("docs/nic.md does not explain the key %q", key)
		}
	}
	flags := literals(t, "internal/nicplugin", calledWith(map[string]int{
		"flags.String": 0, "flags.Bool": 0, "flags.StringVar": 1, "flags.BoolVar": 1,
	}))
	if !slices.Contains(flags, "config-file") || !slices.Contains(flags, "resource-prefix") {
		t.Fatalf("found only the flags %v", flags)
	}
	for _, name := range flags {
		if !strings.Contains(doc, "`--"+name+"`") {
			t.Errorf("docs/nic.md does not explain the flag --%s", name)
		}
	}
}

// literals lists the strings at places in a directory's code, each once.
func literals(t *testing.T, dir string, at func(ast.Node) (ast.Expr, bool)) []string {
	t.Helper()
	var all []string
	for _, name := range goFiles(t, filepath.Join(repository(t), dir)) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		ast.Inspect(parse(t, name, name, nil).file, func(n ast.Node) bool {
			if e, ok := at(n); ok {
				literal, ok := e.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				if text, err := strconv.Unquote(literal.Value); err == nil && !slices.Contains(all, text) {
					all = append(all, text)
				}
			}
			return true
		})
	}
	return all
}

// TestExamplesParse: the configurations in the document are ones.
func TestExamplesParse(t *testing.T) {
	examples := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(read(t, "docs/nic.md"), -1)
	if len(examples) == 0 {
		t.Fatal("docs/nic.md has no example")
	}
	for _, e := range examples {
		if _, err := nicconfig.Parse("docs/nic.md", []byte(e[1]), nicconfig.Options{}); err != nil {
			t.Errorf("%s\n%v", e[1], err)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
