package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kata-device-plugin/internal/cli"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func root(name string, stdout *bytes.Buffer) *cobra.Command {
	return cli.Root(cli.Env{
		Name: name, Version: "v0", Stdout: stdout, Stderr: stdout, Stdin: strings.NewReader(""), Getenv: os.Getenv, Host: "/",
	})
}

// TestHelp: every command says what it does and shows how it is used, and every flag says what it is.
func TestHelp(t *testing.T) {
	seen := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			walk(below)
		}
		if c.Hidden || !c.HasParent() {
			return
		}
		seen++
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the short help is %q", c.CommandPath(), c.Short)
		}
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s has no example of itself: %q", c.CommandPath(), c.Example)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no help", c.CommandPath(), f.Name)
			}
		})
	}
	walk(root("kubectl-device", &bytes.Buffer{}))
	if seen < 10 {
		t.Errorf("only %d commands were looked at", seen)
	}
}

// TestExamples: the flags in the examples exist.
func TestExamples(t *testing.T) {
	word := regexp.MustCompile(`(?:^|\s)--?([a-z][a-z-]*)`)
	top := root("kubectl-device", &bytes.Buffer{})
	seen := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			walk(below)
		}
		for line := range strings.SplitSeq(c.Example, "\n") {
			for part := range strings.SplitSeq(line, "|") {
				_, mine, ok := strings.Cut(part, "kubectl-device ")
				if !ok || strings.HasPrefix(strings.TrimSpace(line), "#") {
					continue
				}
				mine, _, _ = strings.Cut(mine, " -- ")
				of, _, err := top.Find(strings.Fields(mine))
				must(t, err)
				for _, m := range word.FindAllStringSubmatch(mine, -1) {
					seen++
					if of.Flags().Lookup(m[1]) == nil && (len(m[1]) != 1 || of.Flags().ShorthandLookup(m[1]) == nil) {
						t.Errorf("%s has an example with -%s, which %s does not have", c.CommandPath(), m[1], of.CommandPath())
					}
				}
			}
		}
	}
	walk(top)
	if seen < 10 {
		t.Errorf("only %d flags were looked at", seen)
	}
}

// TestCalled: the program calls itself as whoever started it did.
func TestCalled(t *testing.T) {
	for last, want := range map[string]string{
		"/usr/bin/kubectl": "kubectl device", `C:\bin\kubectl.exe`: "kubectl device", "kubectl": "kubectl device",
		"/usr/local/bin/kubectl-device": "kubectl-device", "": "kubectl-device", "/usr/bin/sudo": "kubectl-device",
	} {
		if got := cli.Called(last); got != want {
			t.Errorf("after %q it calls itself %q, want %q", last, got, want)
		}
	}
	for _, name := range []string{"kubectl device", "kubectl-device"} {
		var out bytes.Buffer
		c := root(name, &out)
		c.SetArgs([]string{"inventory", "--help"})
		must(t, c.Execute())
		for _, want := range []string{"Usage:\n  " + name + " inventory [flags]", "  " + name + " inventory --watch"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s says\n%s\nwithout %q", name, out.String(), want)
			}
		}
	}
}

// TestManual: there is a page for each command, the same each time, and nothing in a text is taken for
// a command of roff.
func TestManual(t *testing.T) {
	write := func() map[string]string {
		dir := t.TempDir()
		c := root("kubectl-device", &bytes.Buffer{})
		c.SetArgs([]string{"man-pages", dir})
		must(t, c.Execute())
		pages := map[string]string{}
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		must(t, err)
		for _, f := range files {
			data, err := os.ReadFile(f)
			must(t, err)
			pages[filepath.Base(f)] = string(data)
		}
		return pages
	}
	first, second := write(), write()
	for _, name := range []string{"kubectl-device.1", "kubectl-device-inventory.1", "kubectl-device-explain-pod.1"} {
		if first[name] == "" || first[name] != second[name] {
			t.Errorf("%s is %d bytes long, and %d the second time", name, len(first[name]), len(second[name]))
		}
	}
	known := regexp.MustCompile(`^\.(TH|SH|B|BR|TP|PP|EX|EE)\b`)
	for name, page := range first {
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !known.MatchString(line) {
				t.Errorf("%s has the line %q", name, line)
			}
		}
		for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION"} {
			if !strings.Contains(page, ".SH "+section+"\n") {
				t.Errorf("%s has no %s", name, section)
			}
		}
	}
	if _, ok := first["kubectl-device-run-inside.1"]; ok {
		t.Error("a hidden command has a page")
	}
}

// TestCompletion: the shell is offered what may stand there.
func TestCompletion(t *testing.T) {
	for _, test := range []struct {
		line, want string
	}{
		{"inventory -o ", "wide\n"},
		{"inventory --color ", "never\n"},
		{"inventory --root ", "snapshot\n"},
		{"inventory --nic-config ", "yaml\n"},
		{"explain pod a --nic-config ", "json\n"},
		{"check --explain NAM00", "NAM004\t"},
		{"check --disable NAM00", "NAM004\n"},
		{"check --color ", "always\n"},
		{"check --complete ", "resourceclaims\n"},
		{"check --fail-on ", "warning\n"},
		{"check ", "snapshot\n"},
		{"explain pod team/a ", "yaml\n"},
		{"holders ", "snapshot\n"},
		{"preflight --migrate ", "nvidia.com/gpu\n"},
	} {
		var out bytes.Buffer
		c := root("kubectl-device", &out)
		words := strings.Split(test.line, " ")
		c.SetArgs(append([]string{"__complete"}, words...))
		must(t, c.Execute())
		if !strings.Contains(out.String(), test.want) {
			t.Errorf("%q offers %q, want %q", test.line, out.String(), test.want)
		}
		offers := strings.Split(strings.TrimSpace(out.String()), "\n")
		if once := slices.Compact(slices.Sorted(slices.Values(offers))); len(once) != len(offers) {
			t.Errorf("%q offers something twice: %q", test.line, offers)
		}
	}
}
