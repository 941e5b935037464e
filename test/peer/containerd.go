package peer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"kata-device-plugin/test/peer/wire"
)

// Containerd is a node's container runtime. Containers go on while it is away.
type Containerd struct{ service }

// Start starts containerd and waits until it answers.
func (c *Containerd) Start(ctx context.Context) error {
	err := c.run(ctx, wire.Start{Path: filepath.Join(wire.ProgramDir, "containerd"),
		Args: []string{"--config", etc("containerd")}})
	if err != nil {
		return err
	}
	return Await(ctx, "containerd", func(ctx context.Context) error {
		if err := c.died(); err != nil {
			return err
		}
		conn, err := dialUnix(ctx, c.box.Path("/run/containerd/containerd.sock"))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// Restart stops containerd and starts it again.
func (c *Containerd) Restart(ctx context.Context) error {
	if _, err := c.Stop(ctx); err != nil {
		return err
	}
	return c.Start(ctx)
}

// Crash kills containerd and starts it again.
func (c *Containerd) Crash(ctx context.Context) error {
	if _, err := c.Kill(ctx); err != nil {
		return err
	}
	return c.Start(ctx)
}

// Ctr runs containerd's own client on the things of kubelet, and returns what it said.
func (c *Containerd) Ctr(ctx context.Context, args ...string) (string, error) {
	return c.box.Run(ctx, filepath.Join(wire.ProgramDir, "ctr"), append([]string{"--namespace=k8s.io"}, args...)...)
}

// KillTask ends the main process of a container, as running out of memory does. The ID
// may be that of a pod's status, with the runtime's name before it.
func (c *Containerd) KillTask(ctx context.Context, id string) error {
	_, err := c.Ctr(ctx, "task", "kill", "--signal=SIGKILL", containerID(id))
	return err
}

// load makes the node's images and imports them.
func (c *Containerd) load(ctx context.Context, p *Programs) error {
	file := filepath.Join(c.box.dir, "images.tar")
	if err := images(p.paths["busybox"], file); err != nil {
		return err
	}
	return errors.Join(c.Import(ctx, file), os.Remove(file))
}

// Import imports an archive of images, as a node is given one that it cannot pull.
func (c *Containerd) Import(ctx context.Context, archive string) error {
	// Copied, since the inside has nothing of the directory where it may be.
	data, err := os.ReadFile(archive)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.box.dir, importFile), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("import %s: %w", archive, err)
	}
	if _, err := c.Ctr(ctx, "image", "import", filepath.Join(wire.StateDir, importFile)); err != nil {
		return fmt.Errorf("import %s: %w", archive, err)
	}
	return os.Remove(filepath.Join(c.box.dir, importFile))
}

const importFile = "import.tar"

// Run runs a program inside until it ends, and returns what it printed. That it
// ended otherwise than with exit code 0 is an error.
func (b *box) Run(ctx context.Context, path string, args ...string) (string, error) {
	f, err := os.CreateTemp(filepath.Join(b.dir, "log"), "run-")
	if err != nil {
		return "", fmt.Errorf("run %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	p, err := b.start(ctx, filepath.Base(path), wire.Start{Path: path, Args: args, Log: filepath.Join("/var/log", filepath.Base(f.Name()))})
	if err != nil {
		return "", err
	}
	exit, err := p.Wait(ctx)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(f.Name())
	if err == nil && exit != (Exit{}) {
		err = fmt.Errorf("%s: %s", exit, text)
	}
	if err != nil {
		return string(text), fmt.Errorf("run %s %v: %w", path, args, err)
	}
	return string(text), nil
}

// containerdConfig is containerd's configuration file.
func containerdConfig(runc, stateDir string) string {
	return `version = 3
# opt makes a directory outside of the node's own, the others need what is not there.
disabled_plugins = ['io.containerd.internal.v1.opt', 'io.containerd.nri.v1.nri',
  'io.containerd.snapshotter.v1.btrfs', 'io.containerd.snapshotter.v1.zfs', 'io.containerd.snapshotter.v1.devmapper',
  'io.containerd.snapshotter.v1.blockfile', 'io.containerd.snapshotter.v1.erofs']

[plugins.'io.containerd.cri.v1.images']
  snapshotter = '` + snapshotter(stateDir) + `'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '` + PauseImage + `'

[plugins.'io.containerd.cri.v1.runtime']
  # Where a process may not lower its OOM score, runc would die without a reason.
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['` + wire.ProgramDir + `']
    conf_dir = '` + wire.StateDir + `/etc'
    use_internal_loopback = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = '` + runc + `'
      SystemdCgroup = false
`
}

// snapshotter is one that works in a directory: an overlay cannot be stacked on another.
func snapshotter(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native"
	}
	return "overlayfs"
}
