package arch

import (
	"go/ast"
	"strings"
	"testing"

	"kata-device-plugin/internal/deviceconfig"
	"kata-device-plugin/internal/dra"
)

// TestDriverDocumented: what the DRA driver can be told, and what it tells, is in its document.
func TestDriverDocumented(t *testing.T) {
	doc := read(t, "docs/dra.md")
	for _, part := range []struct {
		what, dir string
		before    string // what the document has before each of them
		at        func(ast.Node) (ast.Expr, bool)
		among     string // one of them, so that it is known that they are found
	}{
		{"flag", "internal/dradriver", "--", calledWith(map[string]int{
			"flags.String": 0, "flags.Bool": 0, "flags.StringVar": 1, "flags.BoolVar": 1, "flags.DurationVar": 1,
		}), "types"},
		{"metric", "internal/dradriver", "passthrough_dra_", eitherOf(calledWith(map[string]int{"gauge": 0, "vector": 0}), field("Name")), "build_info"},
		{"reason of events", "internal/dradriver", "", constant("reason"), "DevicesNotPrepared"},
		{"taint", "internal/dradriver", dra.Driver, constant("taint"), "/unhealthy"},
		{"attribute", "internal/dra", "", calledWith(map[string]int{"a.text": 0, "a.number": 0, "a.positive": 0, "a.flag": 0}), "iommuGroup"},
	} {
		found := literals(t, part.dir, part.at)
		if !strings.Contains(" "+strings.Join(found, " ")+" ", " "+part.among+" ") {
			t.Errorf("found no %s %s: %v", part.what, part.among, found)
		}
		for _, name := range found {
			if !strings.Contains(doc, "`"+part.before+name+"`") {
				t.Errorf("docs/dra.md does not explain the %s %s%s", part.what, part.before, name)
			}
		}
	}
	for _, name := range jsonFields(deviceconfig.Config{}) {
		if !strings.Contains(doc, "`"+name+"`") && !strings.Contains(doc, " "+name+": ") {
			t.Errorf("docs/dra.md does not explain the parameter %s", name)
		}
	}
	for _, of := range dra.Types() {
		if !strings.Contains(doc, "`"+string(of)+"."+dra.Driver+"`") {
			t.Errorf("docs/dra.md has nothing about the class of %s", of)
		}
	}
}

// calledWith finds an argument of calls of functions, each at its place.
func calledWith(functions map[string]int) func(ast.Node) (ast.Expr, bool) {
	return func(n ast.Node) (ast.Expr, bool) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return nil, false
		}
		at, ok := functions[callee(call)]
		if !ok || len(call.Args) <= at {
			return nil, false
		}
		return call.Args[at], true
	}
}

// field finds the value of a field in literals of structs.
func field(name string) func(ast.Node) (ast.Expr, bool) {
	return func(n ast.Node) (ast.Expr, bool) {
		kv, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return nil, false
		}
		key, ok := kv.Key.(*ast.Ident)
		return kv.Value, ok && key.Name == name
	}
}

// constant finds the values of constants whose names begin with a word: of a sum the last part.
func constant(word string) func(ast.Node) (ast.Expr, bool) {
	return func(n ast.Node) (ast.Expr, bool) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, word) {
			return nil, false
		}
		if sum, ok := spec.Values[0].(*ast.BinaryExpr); ok {
			return sum.Y, true
		}
		return spec.Values[0], true
	}
}

func eitherOf(finders ...func(ast.Node) (ast.Expr, bool)) func(ast.Node) (ast.Expr, bool) {
	return func(n ast.Node) (ast.Expr, bool) {
		for _, f := range finders {
			if e, ok := f(n); ok {
				return e, true
			}
		}
		return nil, false
	}
}
