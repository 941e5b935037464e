package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kata-device-plugin/docs"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/report"
)

// checkFlags are what check is told.
type checkFlags struct {
	reportFlags
	explain         string
	enable, disable []string
	verbose         bool
}

func checkCommand(env Env) *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use:   "check [FILE|DIRECTORY|-]...",
		Short: "Find what is wrong in manifests, dumps and clusters",
		Long: `Find what disagrees between objects about devices: names that are advertised, attached and requested in different
spellings, configurations that a plugin ignores, pods that no node can take. Files may be manifests, what kubectl get -o
yaml prints, or whole directories of both, such as a must-gather. They may be nodes that "snapshot" has captured too: in
directories those are the files that end in .snapshot.

What is not among the inputs is not known to be absent: findings that rest on it are notes then. --complete says of
which kinds the inputs have all objects of the cluster.

The exit code is 0 when there is no finding of the severity that --fail-on names (error, if not told otherwise) or above,
1 when there is, 2 for what cannot be read, and 3 when there is nothing to check, or with --require-complete when a check
could not be made.`,
		Example: fmt.Sprintf(`  # Manifests in a repository
  %[1]s check deploy/
  # A cluster, with what you may list
  %[1]s check --live -A
  # A node, here or captured: CDI specs, kubelet's plugins, who has what
  sudo %[1]s check --host
  %[1]s check node.snapshot cluster.yaml
  # What somebody has sent
  kubectl get nodes,pods,configmaps,net-attach-def -A -o yaml | %[1]s check -
  # For a code review
  %[1]s check -o sarif deploy/ > findings.sarif
  # What a finding means
  %[1]s check --explain NAM004`, env.Name),
		RunE: func(c *cobra.Command, args []string) error { return runCheck(c.Context(), env, f, args) },
	}
	f.register(c, "a check could not be made for lack of input", "nodes,configmaps", reports()...)
	flags := c.Flags()
	flags.StringVar(&f.explain, "explain", "", "explain a finding by its `ID`, and check nothing")
	flags.StringSliceVar(&f.enable, "enable", nil, "make only the checks with these `IDs`, or of these families: NAM,NAD")
	flags.StringSliceVar(&f.disable, "disable", nil, "leave out the checks with these `IDs`")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "also say what is merely worth knowing, and which checks could not be made")
	return c
}

func reports() []string { return []string{"json", "sarif", "text"} }

func runCheck(ctx context.Context, env Env, f checkFlags, args []string) error {
	if f.explain != "" {
		return explainFinding(env, f.explain)
	}
	if err := f.check(env, args); err != nil {
		return err
	}
	set, o, err := f.read(ctx, env, args)
	if err != nil {
		return err
	}
	o.Verbose, o.Enable, o.Disable = f.verbose, f.enable, f.disable
	result := check.Run(set, o)
	if err := f.report(env, result); err != nil {
		return err
	}
	if code := f.code(result, f.requireComplete && result.Incomplete()); code != exit.OK {
		return &failure{code: code} // the report has said why
	}
	return nil
}

// check refuses words that mean nothing.
func (f checkFlags) check(env Env, args []string) error {
	if err := f.reportFlags.check(args, reports()...); err != nil {
		return err
	}
	for _, id := range slices.Concat(f.enable, f.disable) {
		// A family, such as NAM, stands for all that are in it.
		if id == "" || !slices.ContainsFunc(check.Checks(), func(c check.Check) bool { return strings.TrimRight(c.ID, "0123456789") == id || c.ID == id }) {
			return unusable(fmt.Errorf("there is no check %q", id), env.Name+" check --explain all lists them")
		}
	}
	return nil
}

func (f checkFlags) report(env Env, r *check.Result) error {
	switch f.output {
	case "json":
		return report.JSON(env.Stdout, r, env.tool())
	case "sarif":
		return report.SARIF(env.Stdout, r, env.tool())
	default:
		return report.Text(env.Stdout, r, report.TextOptions{Color: env.colored(f.color), Verbose: f.verbose})
	}
}

// explainFinding prints what the documents say about a finding, or what there is.
func explainFinding(env Env, id string) error {
	if strings.EqualFold(id, "all") {
		for _, k := range finding.Catalogue() {
			fmt.Fprintf(env.Stdout, "%s  %-7s  %s\n", k.ID, k.Severity, k.Title)
		}
		return nil
	}
	text, ok := docs.Finding(strings.ToUpper(id))
	if !ok {
		return unusable(fmt.Errorf("--explain %s: there is no such finding", id), env.Name+" check --explain all lists them")
	}
	_, err := fmt.Fprint(env.Stdout, text)
	return err
}
