package peer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchies are the mounted control group hierarchies: one with version 2, one for
// each controller with version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{cgroupRoot}, nil
	}
	found, err := filepath.Glob(filepath.Join(cgroupRoot, "*", "cgroup.procs"))
	if err != nil || found == nil {
		return nil, errors.Join(fmt.Errorf("find control groups in %s: none is mounted", cgroupRoot), err)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found, nil
}

// makeCgroup makes the node's own control group, under which kubelet puts all pods.
func makeCgroup(name string) error {
	roots, err := hierarchies()
	if err != nil {
		return err
	}
	for _, root := range roots {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			return fmt.Errorf("make the node's control group: %w", err)
		}
		// With version 2 a group has the controllers that its parent passes on. What the
		// root passes on is the machine's business: systemd has it pass on these.
		if root == cgroupRoot {
			if err := os.WriteFile(filepath.Join(root, name, "cgroup.subtree_control"), []byte("+cpu +memory +pids"), 0o600); err != nil {
				return fmt.Errorf("pass controllers on to the node's control group: %w", err)
			}
		}
	}
	return nil
}

// cgroups lists a node's control groups, the innermost first.
func cgroups(name string) ([]string, error) {
	roots, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, root := range roots {
		err := filepath.WalkDir(filepath.Join(root, name), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && d.IsDir() {
				all = append(all, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list control groups: %w", err)
		}
	}
	slices.Reverse(all)
	return all, nil
}

// removeCgroups removes a node's control groups. The kernel may take a moment to notice
// that the last process has left.
func removeCgroups(ctx context.Context, name string) error {
	return Await(ctx, "the removal of the node's control groups", func(context.Context) error {
		all, err := cgroups(name)
		for _, dir := range all {
			if e := os.Remove(dir); !errors.Is(e, fs.ErrNotExist) {
				err = errors.Join(err, e)
			}
		}
		return err
	})
}
