package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/collect"
	"kata-device-plugin/internal/wholefile"
)

// nodeCommands are those that need a node.
func nodeCommands(env Env) []*cobra.Command {
	return []*cobra.Command{snapshotCommand(env), simCommand(env), insideCommand()}
}

type snapshotFlags struct {
	output, kubelet, salt string
	clear                 bool
	timeout               time.Duration
}

func snapshotCommand(env Env) *cobra.Command {
	var f snapshotFlags
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Write what this node shows into one file",
		Long: `Write what the programs would read of this node into one text file: the hardware, CDI specs, kubelet's plugin
directories, its record of devices and its answer to who has which. The file can be read, compared with diff, and given
to --root of other commands on any machine.

Names of nodes, namespaces, pods, containers and claims are replaced by words, the same name by the same word. MAC and
IP addresses are always left out, and no Secret is read. No device is opened, and no plugin is called.`,
		Example: fmt.Sprintf(`  # For a bug report
  sudo %[1]s snapshot -o node.snapshot
  # Names as they are, to look at it yourself
  sudo %[1]s snapshot --clear-names -o node.snapshot`, env.Name),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return snapshot(c.Context(), env, f) },
	}
	c.Flags().StringVarP(&f.output, "output", "o", "-", "`file` to write, - for standard output")
	c.Flags().StringVar(&f.kubelet, "kubelet-dir", "", "kubelet's root `directory`, where it is not /var/lib/kubelet")
	c.Flags().StringVar(&f.salt, "salt", "", "a secret `word` with which the same names become the same words in several snapshots")
	c.Flags().BoolVar(&f.clear, "clear-names", false, "leave names as they are")
	c.Flags().DurationVar(&f.timeout, "timeout", time.Minute, "how long it may take")
	return c
}

// captureHere captures the node that the command runs on.
func captureHere(ctx context.Context, env Env, kubelet string) (*capture.Capture, error) {
	o := collect.Options{
		Root: env.Host, Kubelet: kubelet, Tool: program + " " + env.Version, Time: time.Now(),
		Links: links(env, os.DirFS(filepath.Join(env.Host, "sys"))),
	}
	defer env.begin("reading this node")()
	c, err := collect.Node(ctx, o)
	if err != nil {
		return nil, unusable(err, "")
	}
	return c, nil
}

// thisNode is the node that the command runs on, as something to check.
func thisNode(ctx context.Context, env Env) (check.NodeInput, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c, err := captureHere(ctx, env, "")
	return check.NodeInput{File: "this node", Capture: c}, err
}

func snapshot(ctx context.Context, env Env, f snapshotFlags) error {
	if f.clear && f.salt != "" {
		return unusable(errors.New("--salt and --clear-names exclude each other"), "leave one of them out")
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	c, err := captureHere(ctx, env, f.kubelet)
	if err != nil {
		return err
	}
	if f.clear {
		capture.Mask(c)
	} else {
		salt := []byte(f.salt)
		if len(salt) == 0 {
			salt = make([]byte, 32)
			rand.Read(salt) // it never fails
		}
		c = capture.Redact(c, salt)
	}
	var text bytes.Buffer
	if _, err := c.WriteTo(&text); err != nil {
		return err
	}
	for _, m := range c.Missing {
		fmt.Fprintf(env.Stderr, "not read: %s: %s\n", m.What, m.Why)
	}
	if os.Geteuid() != 0 && len(c.Missing) > 0 {
		fmt.Fprintln(env.Stderr, "hint: root may read more")
	}
	if f.output == "-" {
		_, err = env.Stdout.Write(text.Bytes())
		return err
	}
	if err := wholefile.Write(f.output, text.Bytes(), 0o600); err != nil {
		return unusable(fmt.Errorf("write snapshot %s: %w", f.output, err), "name a file that can be written with -o")
	}
	return nil
}
