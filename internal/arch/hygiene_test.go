package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// source is one Go file of the repository.
type source struct {
	path  string // below the repository's root
	test  bool
	set   *token.FileSet
	file  *ast.File
	lines int
}

// main says whether the file belongs to a program.
func (s *source) main() bool { return s.file.Name.Name == "main" }

// shipped says whether the file's code ends up in programs that run on nodes.
func (s *source) shipped() bool {
	return !s.test && (strings.HasPrefix(s.path, "internal/") || strings.HasPrefix(s.path, "cmd/"))
}

// complaint is a place in a file and what is wrong there.
type complaint struct {
	at   token.Pos
	what string
}

// houseRule is a rule about single files. Every example is a file that breaks it.
type houseRule struct {
	name, why string
	check     func(*source) []complaint
	examples  []example
}

type example struct{ path, code string }

func TestHouseRules(t *testing.T) {
	sources := readSources(t)
	for _, rule := range houseRules() {
		t.Run(rule.name, func(t *testing.T) {
			for _, s := range sources {
				for _, c := range rule.check(s) {
					t.Errorf("%s:%d: %s; the rule is there because %s", s.path, s.set.Position(c.at).Line, c.what, rule.why)
				}
			}
		})
	}
}

func TestHouseRulesNoticeWhatBreaksThem(t *testing.T) {
	for _, rule := range houseRules() {
		if len(rule.examples) == 0 {
			t.Errorf("rule %q has no example of what breaks it", rule.name)
		}
		for _, e := range rule.examples {
			if len(rule.check(parse(t, e.path, e.path, e.code))) == 0 {
				t.Errorf("rule %q does not notice this in %s:\n%s", rule.name, e.path, e.code)
			}
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	comments := map[string][]string{}
	for _, s := range readSources(t) {
		dir := filepath.Dir(s.path)
		if !s.test {
			comments[dir] = append(comments[dir], "")
			if s.file.Doc != nil {
				comments[dir][len(comments[dir])-1] = filepath.Base(s.path)
			}
		}
	}
	for dir, files := range comments {
		files = slices.DeleteFunc(files, func(file string) bool { return file == "" })
		if len(files) != 1 {
			t.Errorf("package %s has %d package comments %v, want 1 that says what the package is for", dir, len(files), files)
		}
	}
}

// Exceptions that nobody needs any more would hide the next one.
func TestVariableExceptionsAreNeeded(t *testing.T) {
	needed := map[string]bool{}
	for _, s := range readSources(t) {
		for _, spec := range variables(s) {
			for _, name := range spec.Names {
				needed[filepath.ToSlash(filepath.Dir(s.path))+"."+name.Name] = true
			}
		}
	}
	for name := range variableExceptions() {
		if !needed[name] {
			t.Errorf("there is no variable %s: remove its exception", name)
		}
	}
}

// readSources parses every Go file of the repository, and wants there to be programs.
func readSources(t *testing.T) []*source {
	t.Helper()
	commands(t)
	root := repository(t)
	var sources []*source
	for _, file := range goFiles(t, root) {
		rel, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, parse(t, filepath.ToSlash(rel), file, nil))
	}
	return sources
}

// parse parses a file of the disk, or the code that is passed in for it.
func parse(t *testing.T, path, file string, code any) *source {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, code, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatalf("parse %s: %v", path, err)
	}
	return &source{path: path, test: strings.HasSuffix(path, "_test.go"), set: set, file: parsed, lines: set.File(parsed.FileStart).LineCount()}
}
