package cli

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/report"
)

// reportFlags are those of the commands that report findings: what they look at, what they say and
// what a script hears of it.
type reportFlags struct {
	inputFlags
	host            bool
	output, color   string
	failOn          string
	requireComplete bool
	ignore          string
}

// register adds the flags. incomplete says when the exit code is 3 with --require-complete; kinds are
// an example.
func (f *reportFlags) register(c *cobra.Command, incomplete, kinds string, formats ...string) {
	flags := c.Flags()
	f.inputFlags.register(flags, kinds)
	flags.BoolVar(&f.host, "host", false, "look at the node that the command runs on; root sees more")
	registerOutput(c, &f.output, "text", formats...)
	flags.StringVar(&f.failOn, "fail-on", "error",
		"the lowest `severity` that makes the exit code 1: "+strings.Join(severities(), ", "))
	flags.BoolVar(&f.requireComplete, "require-complete", false, "exit with 3 when "+incomplete)
	flags.StringVar(&f.ignore, "ignore", "", "`file` of findings that somebody accepts: a list of id, object and reason")
	registerColor(flags, &f.color)
	complete(c, "fail-on", severities()...)
}

func severities() []string { return []string{"error", "warning", "note", "never"} }

// check refuses words that mean nothing, and a command line that names nothing to look at.
func (f *reportFlags) check(args []string, formats ...string) error {
	var nothing error
	if len(args) == 0 && !f.live && !f.host {
		nothing = unusable(errors.New("there is nothing to look at"),
			"name files or directories, - for standard input, --live for the cluster, or --host for this node")
	}
	return cmp.Or(known("output", "format", f.output, formats), known("color", "word", f.color, colors()),
		known("fail-on", "severity", f.failOn, severities()), nothing, f.inputFlags.check())
}

// read reads all that is looked at.
func (f *reportFlags) read(ctx context.Context, env Env, args []string) (*manifest.Set, check.Options, error) {
	o := check.Options{Namespace: f.cluster.which.Namespace()}
	in, err := readInputs(args, env.Stdin)
	if err != nil {
		return nil, o, err
	}
	for _, c := range in.captures {
		o.Nodes = append(o.Nodes, check.NodeInput{File: c.path, Capture: c.capture, Bytes: c.bytes, SHA256: c.sha256})
	}
	if f.host {
		n, err := thisNode(ctx, env)
		if err != nil {
			return nil, o, err
		}
		o.Nodes = append(o.Nodes, n)
	}
	if f.ignore != "" {
		data, err := readFile("ignore", f.ignore)
		if err != nil {
			return nil, o, err
		}
		if o.Ignore, err = check.ReadIgnores(f.ignore, data); err != nil {
			return nil, o, unusable(err, "")
		}
	}
	set, err := f.objects(ctx, env, in)
	if err == nil {
		err = f.checkNamespace(set)
	}
	return set, o, err
}

// code is what a script goes by. incomplete says that something which counts was not answered.
func (f *reportFlags) code(r *check.Result, incomplete bool) int {
	threshold, counts := map[string]finding.Severity{
		"error": finding.Error, "warning": finding.Warning, "note": finding.Note,
	}[f.failOn]
	if !counts {
		threshold = finding.Error + 1 // no finding is as grave
	}
	return r.ExitCode(threshold, incomplete)
}

// tool is what a document for programs says that it is of. The name does not depend on who called.
func (e Env) tool() report.Tool { return report.Tool{Name: program, Version: e.Version} }
