package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"
)

// maxLines is the length at which a file has become two.
const maxLines = 400

// variableExceptions are package-level variables of shipped code that are neither errors nor
// embedded files, each with the reason why it is no state.
func variableExceptions() map[string]string {
	return map[string]string{
		"cmd/kata-device-plugin.version": "set by the linker",
		"cmd/nic-device-plugin.version":  "set by the linker",
		"cmd/kata-dra-driver.version":    "set by the linker",
		"cmd/kubectl-device.version":     "set by the linker",
		"cmd/device-exporter.version":    "set by the linker",
	}
}

func houseRules() []houseRule {
	return []houseRule{{
		name: "no init",
		why:  "what happens before main cannot be passed anything, ordered or tested",
		check: func(s *source) (found []complaint) {
			for _, d := range s.file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					found = append(found, complaint{f.Pos(), "func init"})
				}
			}
			return found
		},
		examples: []example{{"internal/x/x.go", "package x\nfunc init() {}\n"}},
	}, {
		name:  "only main ends the process",
		why:   "an agent that announces devices ends in one place, in order",
		check: endings,
		examples: []example{
			{"internal/x/x.go", "package x\nfunc f() { panic(1) }\n"},
			{"internal/x/x.go", "package x\nimport \"os\"\nfunc f() { os.Exit(1) }\n"},
			{"internal/x/x.go", "package x\nimport \"log\"\nfunc f() { log.Fatalf(\"\") }\n"},
			{"cmd/x/x.go", "package main\nimport \"os\"\nfunc f() { os.Exit(1) }\n"},
			{"cmd/x/x.go", "package main\nfunc main() { panic(1) }\n"},
		},
	}, {
		name:  "no package-level state",
		why:   "two agents in one test must not share anything; if it is a table, make it a function, or add it to variableExceptions with a reason",
		check: stateVariables,
		examples: []example{
			{"internal/x/x.go", "package x\nvar count int\n"},
			{"internal/x/x.go", "package x\nvar errors = map[string]error{}\n"},
			{"internal/x/x.go", "package x\nvar ErrLast error\n"},
		},
	}, {
		name: "short files",
		why:  "a file that is longer has become two",
		check: func(s *source) []complaint {
			if s.lines > maxLines {
				return []complaint{{s.file.End() - 1, fmt.Sprintf("%d lines, %d at most", s.lines, maxLines)}}
			}
			return nil
		},
		examples: []example{{"internal/x/x.go", "package x\n" + strings.Repeat("\n", maxLines)}},
	}, {
		name: "tests do not sleep",
		why:  "a test that waits for time is slow or flaky, or both: wait for the event, or use testing/synctest",
		check: func(s *source) []complaint {
			if !s.test && !strings.HasPrefix(s.path, "internal/sim/") || imports(s, "testing/synctest") {
				return nil
			}
			return calls(s, "time.Sleep")
		},
		examples: []example{
			{"internal/x/x_test.go", "package x\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"},
			{"internal/sim/x.go", "package sim\nimport \"time\"\nfunc f() { time.Sleep(1) }\n"},
		},
	}, {
		name: "errors say what was done",
		why:  "an error that is read says what was being done to what; that it did not work is known",
		check: func(s *source) (found []complaint) {
			if s.test {
				return nil
			}
			ast.Inspect(s.file, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING && strings.Contains(strings.ToLower(l.Value), "failed to") {
					found = append(found, complaint{l.Pos(), "the words \"failed to\""})
				}
				return true
			})
			return found
		},
		examples: []example{{"internal/x/x.go", "package x\nconst s = \"Failed to read\"\n"}},
	}}
}

// endings finds what ends the process: anywhere, but for os.Exit in a program's main itself.
func endings(s *source) []complaint {
	if !s.shipped() {
		return nil
	}
	found := calls(s, "panic", "log.Fatal", "log.Fatalf", "log.Fatalln", "log.Panic", "log.Panicf", "log.Panicln")
	for _, exit := range calls(s, "os.Exit") {
		if !s.main() || !inMain(s, exit.at) {
			found = append(found, exit)
		}
	}
	return found
}

func inMain(s *source, at token.Pos) bool {
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "main" && f.Pos() <= at && at < f.End() {
			return true
		}
	}
	return false
}

// stateVariables finds package-level variables but for errors, embedded files, assertions
// about types and the exceptions.
func stateVariables(s *source) (found []complaint) {
	exceptions := variableExceptions()
	for _, spec := range variables(s) {
		for i, name := range spec.Names {
			_, excepted := exceptions[filepath.ToSlash(filepath.Dir(s.path))+"."+name.Name]
			if name.Name == "_" || excepted || i < len(spec.Values) && isError(name.Name, spec.Values[i]) {
				continue
			}
			found = append(found, complaint{name.Pos(), "package-level variable " + name.Name})
		}
	}
	return found
}

// variables lists the package-level variables of shipped code that embed no file.
func variables(s *source) (specs []*ast.ValueSpec) {
	if !s.shipped() {
		return nil
	}
	for _, d := range s.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR || embeds(g.Doc) {
			continue
		}
		for _, spec := range g.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok && !embeds(v.Doc) {
				specs = append(specs, v)
			}
		}
	}
	return specs
}

func embeds(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// isError says whether a variable is an error to compare with: named so, and made on the spot.
func isError(name string, value ast.Expr) bool {
	if !strings.HasPrefix(name, "Err") && !strings.HasPrefix(name, "err") {
		return false
	}
	c, ok := value.(*ast.CallExpr)
	return ok && (callee(c) == "errors.New" || callee(c) == "fmt.Errorf")
}

// calls finds the calls of functions, spelled as they are called.
func calls(s *source, names ...string) (found []complaint) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			for _, name := range names {
				if callee(c) == name {
					found = append(found, complaint{c.Pos(), "call of " + name})
				}
			}
		}
		return true
	})
	return found
}

func callee(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok {
			return x.Name + "." + f.Sel.Name
		}
	}
	return ""
}

func imports(s *source, path string) bool {
	for _, spec := range s.file.Imports {
		if spec.Path.Value == `"`+path+`"` {
			return true
		}
	}
	return false
}
