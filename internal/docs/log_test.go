package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestLog: who reads a line that asks for somebody finds it in docs/operations.md, with what to do and
// which command answers. And nothing is there that nobody logs.
func TestLog(t *testing.T) {
	logged := messages(t, map[string]int{"Warn": 0, "Error": 0, "Log": 2})
	if len(logged) < 15 {
		t.Fatalf("found only %v", logged)
	}
	text := page(t, "docs/operations.md").Text
	_, table, _ := strings.Cut(text, "<!-- log: begin -->")
	table, _, found := strings.Cut(table, "<!-- log: end -->")
	if !found {
		t.Fatal("docs/operations.md has no table of the log")
	}
	rows := map[string]bool{}
	for _, row := range rowsOf(table)[1:] {
		if len(row) != 5 {
			t.Errorf("not five cells: %q", row)
			continue
		}
		message := strings.Trim(row[0], "`")
		rows[message] = true
		if !logged[message] {
			t.Errorf("docs/operations.md has %q, which nobody logs at WARN or ERROR", message)
		}
		for i, cell := range row {
			if cell == "" {
				t.Errorf("docs/operations.md: cell %d of %q is empty", i+1, message)
			}
		}
	}
	for message := range logged {
		if !rows[message] {
			t.Errorf("docs/operations.md does not say what to do about %q", message)
		}
	}
	for message := range messages(t, map[string]int{"Info": 0}) {
		if !strings.Contains(text, "`"+message+"`") && !strings.Contains(page(t, "docs/dra.md").Text, "`"+message+"`") {
			t.Errorf("no document explains %q", message)
		}
	}
	for part := range messages(t, map[string]int{"Once": 0}) {
		if !strings.Contains(text, "`"+part) {
			t.Errorf("docs/operations.md does not say what it means that %q is degraded", part)
		}
	}
}

// TestAlerts: each alert that the exporter's rules have is in docs/operations.md, and no other.
func TestAlerts(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join(top, "deploy/device-exporter/components/prometheusrule/prometheusrule.yaml"))
	must(t, err)
	defined := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\s*- alert: (\w+)$`).FindAllStringSubmatch(string(rules), -1) {
		defined[m[1]] = true
	}
	if len(defined) < 10 {
		t.Fatalf("found only the alerts %v", defined)
	}
	text := page(t, "docs/operations.md").Text
	for name := range defined {
		if !strings.Contains(text, "| ["+name+"](runbooks/"+name+".md) |") {
			t.Errorf("docs/operations.md does not have the alert %s", name)
		}
	}
	for _, m := range regexp.MustCompile(`\| \[(Passthrough\w+)\]`).FindAllStringSubmatch(text, -1) {
		if !defined[m[1]] {
			t.Errorf("docs/operations.md has the alert %s, which no rule makes", m[1])
		}
	}
}

// messages are the texts that calls of a logger, by the names of their methods, have at a place. Of a sum
// it is the first part.
func messages(t *testing.T, methods map[string]int) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	set := token.NewFileSet()
	must(t, filepath.WalkDir(filepath.Join(top, "internal"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/internal/sim/") {
			return err
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if at, ok := methods[method.Sel.Name]; ok && len(call.Args) > at {
				if text, ok := constant(call.Args[at]); ok {
					found[text] = true
				}
			}
			return true
		})
		return nil
	}))
	return found
}

func constant(e ast.Expr) (string, bool) {
	if sum, ok := e.(*ast.BinaryExpr); ok {
		e = sum.X
	}
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

// rowsOf are the rows of a table in Markdown, the heading first, without the line below it.
func rowsOf(table string) [][]string {
	var rows [][]string
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}
