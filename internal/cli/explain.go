package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/explain"
)

func explainCommand(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain",
		Short: "Say how far a pod or a claim has come on the way to its devices, and what stops it",
		Long: `Say how far a pod or a claim has come on the way to its devices: a list of questions in a fixed order, each answered with
yes, no or unknown, with what was read, where, and how old it is. The first proven no ends the list, with the ID of the
check that says the same (kubectl device check --explain ID) and with what to do.

What the input does not show is unknown, and the answer says which input would tell. A captured node is named with
--root or beside the files, and found in directories by the ending .snapshot. With --live the namespace of the
object is read, and with -A the others too: who else has the devices is there.

The exit code is 0 when the object was explained, whatever the answer is, and 2 when it was not found or something could
not be read.`,
		Example: fmt.Sprintf(`  %[1]s explain pod team-a/train-0 --live -A
  %[1]s explain claim team-a/gpus dump.yaml`, env.Name),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unusable(fmt.Errorf("explain %s: what is it?", args[0]), "write explain pod "+args[0]+", or explain claim "+args[0])
			}
			return c.Help()
		},
	}
	c.AddCommand(explainOne(env, "pod", explain.Pod), explainOne(env, "claim", explain.Claim))
	return c
}

// explainer explains an object of a kind.
type explainer func(in explain.Input, namespace, name string) (*explain.Report, error)

func explainOne(env Env, kind string, of explainer) *cobra.Command {
	f := lookFlags{named: true}
	c := &cobra.Command{
		Use:   kind + " [NAMESPACE/]NAME [FILE|DIRECTORY|-]...",
		Short: "Explain a " + kind,
		Example: fmt.Sprintf(`  # In the cluster, with who has the devices in other namespaces
  %[1]s explain %[2]s team-a/train-0 --live -A
  # From what somebody has sent, with two of the nodes
  %[1]s explain %[2]s team-a/train-0 must-gather/ --root node-a.snapshot --root node-b.snapshot`, env.Name, kind),
		Args: cobra.MinimumNArgs(1),
	}
	f.register(c, explainFormats()...)
	c.RunE = func(c *cobra.Command, args []string) error { return runExplain(c, env, f, of, args) }
	return c
}

func explainFormats() []string { return []string{"text", "json"} }

// checkExplain refuses what cannot be explained, and takes the captured nodes out of the arguments: without
// objects there is no pod.
func (f *lookFlags) checkExplain(env Env, args []string) (*inputs, error) {
	if err := cmp.Or(known("output", "format", f.output, explainFormats()), f.inputFlags.check()); err != nil {
		return nil, err
	}
	in, err := readInputs(args, env.Stdin)
	if err != nil {
		return nil, err
	}
	if len(in.paths) == 0 && !f.live {
		return nil, unusable(errors.New("there is no object to look at"),
			"name files or directories, - for standard input, or --live for the cluster")
	}
	return in, nil
}

func runExplain(c *cobra.Command, env Env, f lookFlags, of explainer, args []string) error {
	namespace, name, err := named(args[0])
	if err != nil {
		return err
	}
	if given := f.cluster.which.Namespace(); given != "" && namespace != "" && given != namespace {
		return unusable(fmt.Errorf("%s is not in the namespace %s that --namespace names", args[0], given), "leave one of them out")
	}
	inputs, err := f.checkExplain(env, args[1:])
	if err != nil {
		return err
	}
	if f.live && namespace != "" {
		if err := c.Flags().Set("namespace", namespace); err != nil {
			return unusable(err, "")
		}
	}
	view, nodes, err := f.look(c.Context(), env, inputs, slices.Concat(origins(f.roots), inputs.captures))
	if err != nil {
		return err
	}
	in := explain.Input{View: view}
	for _, n := range nodes {
		in.Nodes = append(in.Nodes, explain.Node{
			Name: n.name, Source: n.root, Inventory: n.inventory(c.Context()), Capture: n.capture, Foreign: n.foreign,
		})
	}
	if namespace == "" {
		if namespace, err = f.namespace(); err != nil {
			return err
		}
	}
	if f.live && !f.cluster.all {
		in.Namespace = namespace
	}
	r, err := of(in, namespace, name)
	if err != nil {
		return unusable(err, "name its namespace, as in NAMESPACE/NAME, and see that the input has it")
	}
	if f.output == "json" {
		return explain.JSON(env.Stdout, r)
	}
	return explain.Text(env.Stdout, r, explain.TextOptions{Width: env.Width, Now: time.Now()})
}

// named takes NAMESPACE/NAME apart. The namespace is "" where there is none.
func named(arg string) (namespace, name string, err error) {
	name = arg
	before, after, both := strings.Cut(arg, "/")
	if both {
		namespace, name = before, after
	}
	if name == "" || strings.Contains(name, "/") || both && namespace == "" {
		return "", "", unusable(fmt.Errorf("%q is no name", arg), "write NAMESPACE/NAME, or a name and -n NAMESPACE")
	}
	return namespace, name, nil
}
