package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kata-device-plugin/internal/render"
)

type renderFlags struct {
	via, policy string
	function    bool
	kueue       bool
}

func renderCommand(env Env) *cobra.Command {
	var f renderFlags
	c := &cobra.Command{
		Use:   "render [FILE|DIRECTORY|-]...",
		Short: "Write pods for device plugins or for DRA",
		Long: `Read pods and workloads, and write them so that they get their devices in another way: as extended resources of a
device plugin, by claims of Dynamic Resource Allocation, or as extended resources that a DeviceClass maps. What has
nothing to do with devices passes through as it is, and so do comments. The way back gives what there was.

A policy file says which way goes for which kind of device, and for which version of Kubernetes; --via takes one for
all. What cannot be said in the other way is refused, with the reason.`,
		Example: fmt.Sprintf(`  # Pods of the device plugin, for a pool with DRA
  %[1]s render --via dra app/ | kubectl apply -f -
  # By a policy, and as a KRM function
  %[1]s render --policy policy.yaml app/
  kustomize fn run --exec "%[1]s render --krm" app/
  # The Kueue objects that count the same devices
  %[1]s render --policy policy.yaml --kueue`, env.Name),
		RunE: func(_ *cobra.Command, args []string) error { return runRender(env, f, args) },
	}
	c.Flags().StringVar(&f.via, "via", "", "the `way` for all devices: "+strings.Join(ways(), ", "))
	c.Flags().StringVar(&f.policy, "policy", "", "`file` with a RenderPolicy")
	c.Flags().BoolVar(&f.function, "krm", false, "be a KRM function: read a ResourceList from standard input, and write one")
	c.Flags().BoolVar(&f.kueue, "kueue", false, "write the Kueue objects of the policy instead of pods")
	complete(c, "via", ways()...)
	return c
}

func ways() []string { return []string{"device-plugin", "dra", "extended-resource"} }

func runRender(env Env, f renderFlags, args []string) error {
	p, err := f.read()
	switch {
	case err != nil:
		return err
	case f.function:
		data, err := io.ReadAll(env.Stdin)
		if err != nil {
			return unusable(fmt.Errorf("read standard input: %w", err), "")
		}
		out, err := render.Function(data, p)
		if len(out) > 0 { // what is refused is in it, for whoever runs the function
			if _, werr := env.Stdout.Write(out); werr != nil {
				return werr
			}
		}
		return refused(err)
	case f.kueue && f.policy == "":
		return unusable(errors.New("--kueue without a policy"), "name one with --policy: its part kueue says what to write")
	case f.kueue:
		return renderKueue(env, p)
	case p == nil: // most manifests would come out as they are, as if they had been rendered
		return unusable(errors.New("render: which way the devices go is not said"),
			"use --via with one of "+strings.Join(ways(), ", ")+", or --policy with a file")
	case len(args) == 0:
		return unusable(errors.New("there is nothing to render"), "name files or directories, or - for standard input")
	}
	files, err := renderInput(env, args)
	if err != nil {
		return err
	}
	result, err := render.Render(files, p)
	if err != nil {
		return refused(err)
	}
	for _, n := range result.Notes {
		fmt.Fprintf(env.Stderr, "note: %v\n", n)
	}
	for i, file := range result.Files {
		if i > 0 {
			fmt.Fprintln(env.Stdout, "---")
		}
		if _, err := env.Stdout.Write(file.Data); err != nil {
			return err
		}
	}
	return nil
}

// refused is an error of what was given.
func refused(err error) error {
	if err == nil {
		return nil
	}
	return unusable(err, "")
}

// read is the policy that the flags amount to, nil where there are none.
func (f renderFlags) read() (p *render.Policy, err error) {
	if f.policy != "" {
		data, err := readFile("policy", f.policy)
		if err != nil {
			return nil, err
		}
		if p, err = render.ParsePolicy(f.policy, data); err != nil {
			return nil, unusable(err, "")
		}
	}
	if f.via == "" {
		return p, nil
	}
	if p == nil {
		p = render.Default()
	}
	via, err := render.ParseVia(f.via)
	if err != nil {
		return nil, unusable(fmt.Errorf("--via: %w", err), "")
	}
	return p.With(via), nil
}

func renderKueue(env Env, p *render.Policy) error {
	k, err := render.Kueue(p)
	if err != nil {
		return refused(err)
	}
	for _, n := range k.Notes {
		fmt.Fprintf(env.Stderr, "note: %v\n", n)
	}
	_, err = fmt.Fprintf(env.Stdout, "%s---\n%s", k.Objects, k.Configuration)
	return err
}

// renderInput reads files and, in the order of their names, those below directories.
func renderInput(env Env, args []string) ([]render.File, error) {
	var files []render.File
	add := func(name string, data []byte, err error) error {
		if err != nil {
			return unusable(err, "")
		}
		files = append(files, render.File{Name: name, Data: data})
		return nil
	}
	for _, arg := range args {
		if arg == "-" {
			data, err := io.ReadAll(env.Stdin)
			if err := add("-", data, err); err != nil {
				return nil, err
			}
			continue
		}
		err := filepath.WalkDir(arg, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return unusable(err, "")
			}
			if d.IsDir() || path != arg && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
				return nil
			}
			data, err := os.ReadFile(path)
			return add(path, data, err)
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
