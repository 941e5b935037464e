package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/picture"
)

// svg is a format besides those of an inventory.
const svg = "svg"

// inventoryFlags are what inventory is told.
type inventoryFlags struct {
	root   string
	nics   nicFlags
	output string
	color  string
	ascii  bool
	watch  bool
	every  time.Duration
}

func inventoryCommand(env Env) *cobra.Command {
	var f inventoryFlags
	c := &cobra.Command{
		Use:   "inventory",
		Short: "Show what a node has, and what of it is declared",
		Long: `Show the node's devices: where they hang, what drives them, which resource they are declared as, and for
each one that is not declared the reason, where it was read, and what to do about it.`,
		Example: fmt.Sprintf(`  # On the node itself
  %[1]s inventory
  # The whole tree, NUMA node by NUMA node
  %[1]s inventory -o tree
  # A node that somebody has captured with "%[1]s snapshot"
  %[1]s inventory --root node.snapshot
  # A picture for a wiki
  %[1]s inventory -o svg > node.svg
  # Follow what happens while devices are bound
  %[1]s inventory --watch`, env.Name),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return showInventory(c.Context(), env, f) },
	}
	c.Flags().StringVar(&f.root, "root", "", "look at a captured node, a `file|directory`, instead of this one")
	f.nics.register(c.Flags())
	registerOutput(c, &f.output, string(inventory.Table), formats()...)
	registerColor(c.Flags(), &f.color)
	c.Flags().BoolVar(&f.ascii, "ascii", false, "draw trees with characters that every terminal has")
	c.Flags().BoolVarP(&f.watch, "watch", "w", false, "go on, and show the node again whenever it has changed")
	c.Flags().DurationVar(&f.every, "interval", time.Second, "how often to look with --watch")
	return c
}

// formats are the words for --output.
func formats() []string {
	all := []string{svg}
	for _, f := range inventory.Formats() {
		all = append(all, string(f))
	}
	slices.Sort(all)
	return all
}

func (f inventoryFlags) check() error {
	if err := known("output", "format", f.output, formats()); err != nil {
		return err
	}
	if err := known("color", "word", f.color, colors()); err != nil {
		return err
	}
	if f.every < 100*time.Millisecond {
		return unusable(fmt.Errorf("--interval %s: too short", f.every), "use 100ms or more")
	}
	return nil
}

func showInventory(ctx context.Context, env Env, f inventoryFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	o, err := f.nics.opener(env, filepath.Join(env.Host, podResources))
	if err != nil {
		return err
	}
	n, err := o.open(origin{path: f.root})
	if err != nil {
		return err
	}
	err = watch(ctx, f, func(last string) (string, error) {
		var text strings.Builder
		if err := write(&text, n.inventory(ctx), env, f); err != nil {
			return "", err
		}
		if text.String() == last {
			return last, nil
		}
		if last != "" {
			fmt.Fprintf(env.Stdout, "\n# %s\n", time.Now().UTC().Format(time.RFC3339))
		}
		_, err := io.WriteString(env.Stdout, text.String())
		return text.String(), err
	})
	return errors.Join(err, n.close())
}

// watch shows something once, or again and again until ctx ends.
func watch(ctx context.Context, f inventoryFlags, show func(last string) (string, error)) error {
	last, err := show("")
	if err != nil || !f.watch {
		return err
	}
	ticker := time.NewTicker(f.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil // ^C is how people end it
		case <-ticker.C:
		}
		if last, err = show(last); err != nil {
			return err
		}
	}
}

// write renders an inventory as the flags want it.
func write(w io.Writer, inv *inventory.Inventory, env Env, f inventoryFlags) error {
	if f.output == svg {
		return picture.Write(w, inv, picture.Options{})
	}
	return inv.Write(w, inventory.Format(f.output), inventory.Options{Width: env.Width, Color: env.colored(f.color), ASCII: f.ascii})
}

// colored says whether to use colours. https://no-color.org has the convention.
func (e Env) colored(word string) bool {
	return word == "always" || word == "auto" && e.Width > 0 && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
}

// readFile reads a file that a flag names.
func readFile(flag, path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, unusable(fmt.Errorf("--%s: %w", flag, err), "")
	}
	return data, nil
}
