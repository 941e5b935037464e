package render

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
)

// TestFunction: a file has an input and what the function writes, or the error as well.
func TestFunction(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "function", "*.txt"))
	must(t, err)
	if len(files) < 4 {
		t.Fatalf("only %d files", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			sections := readSections(t, file)
			out, err := Function([]byte(sections[0].text), Default())
			got := []section{sections[0], {"output", string(out)}}
			if err != nil {
				got = append(got, section{"error", err.Error() + "\n"})
			}
			if golden.FlagUpdate() {
				writeSections(t, file, got)
			} else if diff := cmp.Diff(sections, got, cmp.AllowUnexported(section{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err == nil {
				again, err := Function(out, Default())
				must(t, err)
				if diff := cmp.Diff(string(out), string(again)); diff != "" && !strings.Contains(string(out), "results:") {
					t.Errorf("not the same when it is called again (-once +twice):\n%s", diff)
				}
			}
		})
	}
}

func TestNoFunction(t *testing.T) {
	const list = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n"
	for _, tt := range []struct{ what, input, want string }{
		{"nothing", "", "stdin:1: is no ResourceList; begin with apiVersion: config.kubernetes.io/v1 and kind: ResourceList"},
		{"a pod", "apiVersion: v1\nkind: Pod\n", "stdin:1: is no ResourceList"},
		{"an older version", "apiVersion: config.kubernetes.io/v1alpha1\nkind: ResourceList\n", "stdin:1: is no ResourceList"},
		{"no YAML", "a: [", "stdin:2: is not YAML"},
		{"a ConfigMap as configuration", list + "functionConfig: {apiVersion: v1, kind: ConfigMap, data: {via: dra}}\n",
			`functionConfig:3: apiVersion: "v1" is not known here; write katacontainers.io/v1alpha1`},
	} {
		out, err := Function([]byte(tt.input), Default())
		if _, ok := errors.AsType[Problems](err); !ok || out != nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: got %q, %v, want %s", tt.what, out, err, tt.want)
		}
	}
	const want = "stdin:1: does not say which way to take; give a RenderPolicy as its functionConfig"
	if out, err := Function([]byte(list+"items: []\n"), nil); out != nil || err == nil || err.Error() != want {
		t.Errorf("without any policy: got %q, %v, want %s", out, err, want)
	}
}
