package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/collect"
	"kata-device-plugin/internal/sim"
)

// simCommand runs commands on nodes that there are not.
func simCommand(env Env) *cobra.Command {
	var platform string
	c := &cobra.Command{
		Use:   "sim --platform NAME -- COMMAND [ARGUMENT...]",
		Short: "Run a command on a simulated node",
		Long: `Run a command that sees the hardware of a simulated node: in /sys, in /dev/vfio, and with kubelet's and CDI's
directories empty. It runs in a mount namespace of its own, so nothing of this machine changes. Device nodes need root;
without it the command runs in a user namespace, and sees none.`,
		Example: fmt.Sprintf(`  # What there is to simulate
  %[1]s sim list
  # Look at a node that you do not have
  %[1]s sim --platform hgx-h100 -- %[1]s inventory -o tree
  # The same node as a file
  %[1]s sim export --platform hgx-h100 > h100.snapshot`, env.Name),
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || c.ArgsLenAtDash() != 0 {
				return unusable(errors.New("there is no command to run"), "put it behind --, as in "+env.Name+" sim --platform hgx-h100 -- "+env.Name+" inventory")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return runSimulated(c.Context(), env, platform, args) },
	}
	addPlatform(c, &platform)
	export := &cobra.Command{
		Use: "export --platform NAME", Short: "Write a simulated node into a file, as snapshot does", Args: cobra.NoArgs,
		Example: "  " + env.Name + " sim export --platform gb200 > gb200.snapshot",
		RunE:    func(c *cobra.Command, _ []string) error { return exportSimulated(c.Context(), env, platform) },
	}
	addPlatform(export, &platform)
	c.AddCommand(export, &cobra.Command{
		Use: "list", Short: "List the platforms", Args: cobra.NoArgs,
		Example: "  " + env.Name + " sim list",
		RunE:    func(*cobra.Command, []string) error { return listPlatforms(env) },
	})
	return c
}

func addPlatform(c *cobra.Command, platform *string) {
	var names []string
	for _, p := range sim.Platforms() {
		names = append(names, p.Name)
	}
	c.Flags().StringVar(platform, "platform", "", "the node's `name`: "+strings.Join(names, ", "))
	complete(c, "platform", names...)
}

func listPlatforms(env Env) error {
	w := tabwriter.NewWriter(env.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "PLATFORM\tFUNCTIONS")
	for _, p := range sim.Platforms() {
		fmt.Fprintf(w, "%s\t%d\n", p.Name, len(p.Functions))
	}
	return w.Flush()
}

// simulate lays out a node below a directory, and hands it out until it is done.
func simulate(env Env, platform string, do func(n *sim.Node, dir string) error) (err error) {
	shape, err := sim.PlatformByName(platform)
	if err != nil {
		return unusable(fmt.Errorf("--platform: %w", err), "")
	}
	if env.simulates != nil {
		env.simulates.Store(true)
	}
	dir, err := sim.TempDir()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	root := filepath.Join(dir, "node")
	n, err := sim.New(root, shape)
	if err != nil {
		return err
	}
	return do(n, root)
}

func exportSimulated(ctx context.Context, env Env, platform string) error {
	return simulate(env, platform, func(n *sim.Node, dir string) error {
		c, err := collect.Node(ctx, collect.Options{
			// The same node is the same file.
			Root: dir, Hostname: platform, Tool: program + " " + env.Version, Time: time.Unix(0, 0).UTC(), Links: n.Links,
		})
		if err != nil {
			return err
		}
		capture.Mask(c)
		_, err = c.WriteTo(env.Stdout)
		return err
	})
}

// runSimulated starts this program once more, in namespaces in which it may mount.
func runSimulated(ctx context.Context, env Env, platform string, command []string) error {
	return simulate(env, platform, func(n *sim.Node, dir string) error {
		if err := n.WriteLinks(filepath.Join(dir, "sys", simulatedLinks)); err != nil {
			return err
		}
		c := exec.CommandContext(ctx, "/proc/self/exe", append([]string{insideName, dir, "--"}, command...)...)
		c.Args[0] = program
		c.Stdin, c.Stdout, c.Stderr = env.Stdin, env.Stdout, env.Stderr
		c.SysProcAttr = namespaces(os.Getuid(), os.Getgid())
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
		c.WaitDelay = 10 * time.Second
		err := runUntilTwice(c)
		if ended, ok := errors.AsType[*exec.ExitError](err); ok {
			return &failure{code: codeOf(ended)} // the command has said why itself
		}
		if err != nil {
			return fmt.Errorf("run %s on a simulated node: %w", command[0], err)
		}
		return nil
	})
}

// codeOf is how a command has ended, as a shell says it: a signal is its number above 128.
func codeOf(ended *exec.ExitError) int {
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return max(ended.ExitCode(), 1)
}

// runUntilTwice runs a command that is told to end by the first signal, and killed by the second.
func runUntilTwice(c *exec.Cmd) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := c.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for range 2 {
			select {
			case <-signals:
			case <-ended:
				return
			}
		}
		_ = c.Process.Kill() // it has ended otherwise
	}()
	return c.Wait()
}

// namespaces are those in which a user may mount.
func namespaces(uid, gid int) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if uid != 0 {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: gid, Size: 1}}
	}
	return a
}

// exists says whether there is something at a path.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
