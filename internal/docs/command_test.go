package docs_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"kata-device-plugin/internal/cli"
	"kata-device-plugin/internal/docs"
)

// otherText are beginnings of indented blocks that nobody types into a shell.
func otherText() []string {
	return []string{
		"cmd/    ",                                      // CONTRIBUTING.md: directories
		`"productName" in device`,                       // docs/dra.md: expressions for claims
		"- id: NAM004", "apiVersion: katacontainers.io", // docs/kubectl-device.md: files
		"--register-with-taints=", // docs/dra.md: a flag of kubelet
	}
}

func isOther(line string) bool {
	return slices.ContainsFunc(otherText(), func(s string) bool { return strings.HasPrefix(line, s) })
}

// programs says for each program that readers are told to run how its commands are held against what is
// so. No command is in the documents that is not of one of these.
func programs() map[string]func(docs.Command) error {
	return map[string]func(docs.Command) error{
		tool:      toolCommand,
		"kubectl": kubectlCommand,
		"make":    makeCommand,
		"go":      goCommand,
		"git":     onlyParsed, "bash": onlyParsed, // every machine that builds this has them
		// Of the machine or of others. They change or read what a machine of a test does not have: a
		// registry, a cluster, a node. That the shell understands the line is all that is tested.
		"cat": onlyParsed, "chromium": onlyParsed, "cp": onlyParsed, "crictl": onlyParsed, "ctr": onlyParsed, "curl": onlyParsed,
		"diff": onlyParsed, "dmesg": onlyParsed, "docker": onlyParsed, "find": onlyParsed, "grep": onlyParsed,
		"helm": onlyParsed, "install": onlyParsed, "ip": onlyParsed, "jq": onlyParsed, "journalctl": onlyParsed,
		"ls": onlyParsed, "lspci": onlyParsed, "mkdir": onlyParsed, "modprobe": onlyParsed, "oras": onlyParsed,
		"pgrep": onlyParsed, "rm": onlyParsed, "scp": onlyParsed, "sha256sum": onlyParsed, "skopeo": onlyParsed,
		"sleep": onlyParsed, "ssh": onlyParsed, "ssh-keygen": onlyParsed, "tail": onlyParsed, "tar": onlyParsed,
		"xdg-open": onlyParsed,
	}
}

func onlyParsed(docs.Command) error { return nil }

// TestCommands: every command in the documents is one that there is, with flags that there are, about
// files that there are. What kubectl itself makes of its flags is tested in test/docs, which links it.
func TestCommands(t *testing.T) {
	found := map[string]int{}
	for _, p := range pages(t) {
		commands, err := p.Commands(isOther)
		if err != nil {
			t.Error(err)
		}
		for _, span := range p.Spans() {
			if !typed(span.Text) {
				continue
			}
			inline, err := docs.Parse(span.Where, span.Text)
			if err != nil {
				t.Error(err)
			}
			commands = append(commands, inline...)
		}
		for _, c := range commands {
			found[c.Args[0]]++
			if err := right(c); err != nil {
				t.Errorf("%s: %q: %v", c.Where, c.Args, err)
			}
		}
	}
	for name, least := range map[string]int{tool: 40, "kubectl": 60, "make": 4, "go": 5} {
		if found[name] < least {
			t.Errorf("found only %d commands of %s", found[name], name)
		}
	}
}

// typed says whether code in a line is a whole command, which has more than a name.
func typed(text string) bool {
	text = strings.TrimPrefix(text, "sudo ")
	return slices.ContainsFunc([]string{tool + " ", "kubectl ", "make ", "go "}, func(s string) bool { return strings.HasPrefix(text, s) })
}

// right is nil for a command that holds.
func right(c docs.Command) error {
	check, ok := programs()[strings.TrimPrefix(c.Args[0], "./")]
	if !ok {
		return errors.New("nobody knows how to test it: see programs()")
	}
	return errors.Join(check(c), paths(c))
}

// paths: what a command names below the directories of the repository is there.
func paths(c docs.Command) error {
	var all []error
	for _, arg := range c.Args[1:] {
		if !regexp.MustCompile(`^(\./)?(charts|cmd|deploy|docs|internal|test|tools)/`).MatchString(arg) {
			continue
		}
		_, err := os.Stat(filepath.Join(top, strings.TrimSuffix(arg, "/...")))
		all = append(all, err)
	}
	return errors.Join(all...)
}

// kubectlCommand: as a plugin it is the program of this repository.
func kubectlCommand(c docs.Command) error {
	if len(c.Args) > 1 && c.Args[1] == "device" {
		return toolCommand(docs.Command{Where: c.Where, Args: c.Args[1:]})
	}
	return nil
}

// toolCommand: the command and its flags are there, and accept what is behind them.
func toolCommand(c docs.Command) error {
	var out bytes.Buffer
	root := cli.Root(cli.Env{Name: tool, Stdin: &bytes.Buffer{}, Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }})
	found, rest, err := root.Find(c.Args[1:])
	if err != nil {
		return fmt.Errorf("find the command: %w", err)
	}
	switch err := found.ParseFlags(rest); {
	case errors.Is(err, pflag.ErrHelp):
		return nil
	case err != nil:
		return fmt.Errorf("read the flags: %w", err)
	}
	args := found.Flags().Args()
	if err := found.ValidateArgs(args); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	if at := found.ArgsLenAtDash(); at >= 0 && len(args) > at {
		return right(docs.Command{Where: c.Where, Args: args[at:]})
	}
	return nil
}

// makeCommand: targets and variables are the Makefile's.
func makeCommand(c docs.Command) error {
	text, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		return fmt.Errorf("read the targets: %w", err)
	}
	for _, arg := range c.Args[1:] {
		name, _, isVariable := strings.Cut(arg, "=")
		pattern := `(?m)^` + regexp.QuoteMeta(name) + `:`
		if isVariable {
			pattern = `(?m)^(export )?` + regexp.QuoteMeta(name) + `\s*\??:?=`
		}
		if !regexp.MustCompile(pattern).Match(text) {
			return fmt.Errorf("the Makefile has no %s", name)
		}
	}
	return nil
}

// goCommand: the packages are there, and have tests and fuzz targets of these names.
func goCommand(c docs.Command) error {
	module, source := top, ""
	for i, arg := range c.Args {
		switch {
		case arg == "-C":
			module = filepath.Join(top, c.Args[i+1])
		case strings.HasPrefix(arg, "./") && !strings.Contains(arg, "..."):
			files, err := filepath.Glob(filepath.Join(module, arg, "*.go"))
			if err != nil || len(files) == 0 {
				return fmt.Errorf("there is no package %s", arg)
			}
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					return fmt.Errorf("read the tests: %w", err)
				}
				source += string(text)
			}
		}
	}
	for _, name := range regexp.MustCompile(`\b(Test|Fuzz|Benchmark)[A-Z]\w*`).FindAllString(strings.Join(c.Args, " "), -1) {
		if !strings.Contains(source, "func "+name+"(") {
			return fmt.Errorf("there is no %s", name)
		}
	}
	return nil
}

// TestWrongCommands: what is wrong in a command is noticed. Otherwise the test above would show nothing.
func TestWrongCommands(t *testing.T) {
	for _, script := range []string{
		"kubectl-device inventry", "kubectl-device inventory --rot node.snapshot", "kubectl-device explain pod",
		"kubectl-device sim --platform hgx-h100 -- kubectl-device inventory --rot x",
		"kubectl device check --liv", "make tset", "make demo PLATTFORM=x", "kubectl apply -k deploy/kata-device-plugins",
		"go test ./internal/pcl", "go test ./internal/pci -run TestNothing", "until make tset; do sleep 1; done", "X=1 make demo | make tset",
		"sudo make tset", "nothing-like-it",
	} {
		commands, err := docs.Parse("here", script)
		must(t, err)
		var wrong []error
		for _, c := range commands {
			wrong = append(wrong, right(c))
		}
		if errors.Join(wrong...) == nil {
			t.Errorf("%q is found to be right", script)
		}
	}
	if _, err := docs.Parse("here", "if true"); err == nil {
		t.Error("a script that ends early is no error")
	}
}
