// Package cli is kubectl-device: commands for people, which show what a node has and say what is
// wrong. It renders the snapshot and the findings of the other packages, and changes nothing.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/exit"
)

// Env is what a command gets from whoever starts it.
type Env struct {
	// Name is how the program was called: kubectl-device, or kubectl device. See Called.
	Name, Version string
	Args          []string
	Stdin         io.Reader
	Stdout        io.Writer
	Stderr        io.Writer
	Getenv        func(string) string
	// Width is the number of columns of the terminal that Stdout is, 0 where it is none.
	Width int
	// Watched says that Stderr is a terminal, at which somebody may be waiting.
	Watched bool
	// Host is the root directory of the node that the command runs on.
	Host string

	simulates *atomic.Bool // it has a simulated node to remove; nil where nobody asks
}

// program is the program's name. kubectl finds it by that.
const program = "kubectl-device"

// Called is the name under which the program was called, so that what it prints can be typed. last is
// the variable $_, in which a shell leaves the command that it has started: when that is kubectl,
// kubectl has become this program.
func Called(last string) string {
	base := last[strings.LastIndexAny(last, `/\`)+1:]
	if strings.TrimSuffix(base, ".exe") == "kubectl" {
		return "kubectl device"
	}
	return program
}

// failure is an error with the code to exit with, and what the person can do.
type failure struct {
	code int
	err  error
	hint string // "" for none
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// unusable says that what was given cannot be used.
func unusable(err error, hint string) error { return &failure{code: exit.Usage, err: err, hint: hint} }

// Main runs a command line until ctx ends, and returns its exit code. An error is one line, and a
// line with a hint where there is something to do.
func Main(ctx context.Context, env Env) int {
	root := Root(env)
	root.SetArgs(env.Args)
	err := root.ExecuteContext(ctx)
	var f *failure
	switch {
	case err == nil:
		return exit.OK
	case !errors.As(err, &f):
		f = &failure{code: exit.Usage, err: err, hint: env.Name + " --help shows the commands"}
	}
	if f.err != nil {
		fmt.Fprintf(env.Stderr, "error: %v\n", f.err)
	}
	if f.hint != "" {
		fmt.Fprintf(env.Stderr, "hint: %s\n", f.hint)
	}
	return f.code
}

// Root is the tree of commands.
func Root(env Env) *cobra.Command {
	root := &cobra.Command{
		Use: program, Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: env.Name},
		Short: "See passthrough devices, and why a pod does not get one",
		Long: `See the devices of a node that pods get passed through, and why a device or a pod is not as it should be.

Nothing is changed, anywhere: no command binds a device, and none writes to the cluster.`,
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return unusable(err, c.CommandPath()+" --help shows the flags")
	})
	root.AddCommand(versionCommand(env), inventoryCommand(env), checkCommand(env), renderCommand(env), explainCommand(env),
		holdersCommand(env), preflightCommand(env))
	root.AddCommand(nodeCommands(env)...)
	root.AddCommand(manCommand())
	completeAll(root)
	return root
}
