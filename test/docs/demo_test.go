package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/docs"
)

// TestDemo: what the documents say that the demo prints is what it prints, but for what is different each
// time. The demo is a program of the module test, which is built here as a reader builds it.
func TestDemo(t *testing.T) {
	pages, err := docs.Pages("../..")
	must(t, err)
	ran := 0
	for _, p := range pages {
		for _, b := range p.Blocks() {
			steps := b.Steps()
			if b.Lang != "console" || len(steps) != 1 || !strings.HasPrefix(steps[0].Script, "make demo") {
				continue
			}
			ran++
			got := steady(makes(t.Context(), t, steps[0].Script))
			if want := steady(steps[0].Output); got != want {
				t.Errorf("%s:%d says of %s\n%s\nand it prints\n%s", p.Name, b.Line, steps[0].Script, want, got)
			}
		}
	}
	if ran == 0 {
		t.Error("no document shows the demo")
	}
}

func makes(ctx context.Context, t *testing.T, script string) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	c := exec.CommandContext(ctx, "bash", "-c", script)
	c.Dir = root
	// A make that runs these tests must not tell the reader's make what it is.
	c.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "MAKE") || strings.HasPrefix(s, "MFLAGS") })
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// steady replaces what differs from run to run: the directory, the process, and how long it took.
func steady(text string) string {
	for _, r := range []struct{ what, by string }{
		{`\S*kata-sim\.[0-9]+`, "DIR"},
		{`process [0-9]+`, "process N"},
		{`after [0-9.]+ m?s`, "after N ms"},
		{`(?m)^go: downloading .*\n`, ""},
	} {
		text = regexp.MustCompile(r.what).ReplaceAllString(text, r.by)
	}
	return strings.TrimSpace(text)
}
