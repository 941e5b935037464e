package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/live"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/preflight"
	"kata-device-plugin/internal/report"
)

// preflightFlags are what preflight is told.
type preflightFlags struct {
	reportFlags
	ways    []string
	migrate []string
}

func preflightCommand(env Env) *cobra.Command {
	f := preflightFlags{reportFlags: reportFlags{inputFlags: inputFlags{cluster: clusterFlags{distant: true}}}}
	c := &cobra.Command{
		Use:   "preflight [FILE|DIRECTORY|-]...",
		Short: "Say whether a node or a cluster is ready for the device plugin or for DRA",
		Long: `Say whether a node or a cluster is ready for a way by which pods get devices: the versions, the container runtime, Kata,
kubelet's topology manager, both ways on one device, and what is done in production. Each question of the list is
answered with yes, no or unknown. A no names a finding, which follows below with what to do; unknown names the input
that would tell.

Inputs are those of check: manifests, dumps, captured nodes, and with --live the cluster, with --host this node. Only a
node, here or captured, has the settings of the container runtime, of kubelet and of Kata. So that the node and its
object are known to be the same, capture it with --clear-names.

For a migration, --migrate names an extended resource that is to be left behind, and perhaps the DeviceClass in its
place. Then everything that depends on the name is listed, with its place and what to do, and the devices that the node's
device plugin has are compared with those that the DRA driver has published, one by one by PCI address.

The exit code is 0 when there is no finding of the severity that --fail-on names (error, if not told otherwise) or above,
1 when there is, 2 for what cannot be read, and 3 when the input answers no question, or with --require-complete when it
leaves one open.`,
		Example: fmt.Sprintf(`  # Is the cluster ready for DRA?
  %[1]s preflight --live -A --for dra
  # This node, as root
  sudo %[1]s preflight --host --for device-plugin
  # A cluster's dump with some of its nodes
  %[1]s preflight cluster.yaml node-a.snapshot node-b.snapshot
  # What a migration would touch
  %[1]s preflight --live -A --for dra --migrate nvidia.com/gpu=gpu.vfio.katacontainers.io`, env.Name),
		RunE: func(c *cobra.Command, args []string) error { return runPreflight(c.Context(), env, f, args) },
	}
	f.register(c, "an answer is unknown", "nodes,networkpolicies", preflightFormats()...)
	flags := c.Flags()
	flags.StringSliceVar(&f.ways, "for", preflightWays(), "the `way` to ask about: "+strings.Join(preflightWays(), ", "))
	flags.StringArrayVar(&f.migrate, "migrate", nil, "`RESOURCE[=CLASS]` that is to be left behind, and the device class in its place")
	complete(c, "for", preflightWays()...)
	return c
}

func preflightFormats() []string { return []string{"json", "text"} }

func preflightWays() []string {
	var all []string
	for _, w := range preflight.Ways() {
		all = append(all, string(w))
	}
	return all
}

func runPreflight(ctx context.Context, env Env, f preflightFlags, args []string) error {
	moves, err := f.check(args)
	if err != nil {
		return err
	}
	in, set, err := f.input(ctx, env, args)
	if err != nil {
		return err
	}
	in.Moves = moves
	for _, w := range preflight.Ways() {
		if slices.Contains(f.ways, string(w)) {
			in.Ways = append(in.Ways, w)
		}
	}
	r := preflight.Run(in)
	result := &check.Result{
		Inputs: set.Inputs, Nodes: in.Checked.Nodes, Complete: in.Checked.Complete, Listed: in.Checked.Listed, Findings: r.Findings,
	}
	if err := f.report(env, r, result); err != nil {
		return err
	}
	if code := f.code(result, r.Nothing() || f.requireComplete && r.Incomplete()); code != exit.OK {
		return &failure{code: code} // the report has said why
	}
	return nil
}

// check refuses words that mean nothing.
func (f preflightFlags) check(args []string) (moves []preflight.Move, err error) {
	if err := f.reportFlags.check(args, preflightFormats()...); err != nil {
		return nil, err
	}
	if len(f.ways) == 0 {
		return nil, unusable(errors.New("--for: no way is named"), "use some of "+strings.Join(preflightWays(), ", "))
	}
	for _, w := range f.ways {
		if !slices.Contains(preflightWays(), w) {
			return nil, unusable(fmt.Errorf("--for %s: there is no such way", w), "use some of "+strings.Join(preflightWays(), ", "))
		}
	}
	return f.moves()
}

// moves are what --migrate names, each once.
func (f preflightFlags) moves() (all []preflight.Move, err error) {
	for _, text := range f.migrate {
		m, err := preflight.ParseMove(text)
		if err != nil {
			return nil, unusable(fmt.Errorf("--migrate: %w", err), "")
		}
		i := slices.IndexFunc(all, func(other preflight.Move) bool { return other.Resource == m.Resource })
		if i >= 0 && all[i] != m {
			return nil, unusable(fmt.Errorf("--migrate %s: %s is named before, with another class or none", text, m.Resource),
				"name it once, with the class that is to be in its place")
		}
		if i < 0 {
			all = append(all, m)
		}
	}
	return all, nil
}

// input reads everything that is asked about.
func (f preflightFlags) input(ctx context.Context, env Env, args []string) (preflight.Input, *manifest.Set, error) {
	var in preflight.Input
	set, o, err := f.read(ctx, env, args)
	if err != nil {
		return in, nil, err
	}
	if f.live {
		if in.API, err = f.ask(ctx); err != nil {
			return in, nil, err
		}
	}
	in.View, in.Checked = check.Look(set, o), check.Run(set, o)
	return in, set, nil
}

// ask asks the cluster's API server about itself.
func (f preflightFlags) ask(ctx context.Context) (*preflight.API, error) {
	config, _, err := f.cluster.which.Config()
	if err != nil {
		return nil, unknownCluster(err)
	}
	server, err := live.Ask(ctx, config)
	if err != nil {
		return nil, unusable(err, "check that the cluster can be reached: kubectl version")
	}
	return &preflight.API{Version: server.Version, Served: server.Served}, nil
}

func (f preflightFlags) report(env Env, r *preflight.Report, result *check.Result) error {
	if f.output == "text" {
		if err := preflight.Text(env.Stdout, r, env.Width); err != nil {
			return err
		}
		if err := report.Text(env.Stdout, result, report.TextOptions{Color: env.colored(f.color)}); err != nil {
			return err
		}
		return preflight.Verdict(env.Stdout, r)
	}
	var findings bytes.Buffer
	if err := report.JSON(&findings, result, env.tool()); err != nil {
		return err
	}
	return preflight.JSON(env.Stdout, r, findings.Bytes())
}
