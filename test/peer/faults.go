package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"kata-device-plugin/test/peer/wire"
)

// What can go wrong on a node, to be done by a test. Pausing and killing are methods of
// the programs; what happens to devices is the simulated machine's.

// HoldPods keeps pods from getting their network: kubelet has admitted them and has
// their devices granted, and their containers are not created before LetPods. To pause
// containerd for that would not do, since kubelet's main loop may wait for it.
func (n *Node) HoldPods() error {
	if err := os.WriteFile(filepath.Join(n.dir, wire.Hold), nil, 0o600); err != nil {
		return fmt.Errorf("hold the pods: %w", err)
	}
	return nil
}

// LetPods ends HoldPods.
func (n *Node) LetPods() error {
	if err := os.Remove(filepath.Join(n.dir, wire.Hold)); err != nil {
		return fmt.Errorf("let the pods go: %w", err)
	}
	return nil
}

// RemoveSocket removes a socket from kubelet's device plugin directory, as a clean-up
// that goes too far does.
func (n *Node) RemoveSocket(name string) error {
	if err := os.Remove(n.Path("/var/lib/kubelet/device-plugins/" + name)); err != nil {
		return fmt.Errorf("remove socket: %w", err)
	}
	return nil
}

// Sockets are those in kubelet's device plugin directory that match a pattern.
func (n *Node) Sockets(pattern string) ([]string, error) {
	found, err := filepath.Glob(n.Path("/var/lib/kubelet/device-plugins/" + pattern))
	for i := range found {
		found[i] = filepath.Base(found[i])
	}
	return found, err
}

// WipeCDI removes every file of the CDI directory.
func (n *Node) WipeCDI() error {
	dir := n.Path("/run/cdi")
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	if err != nil {
		return fmt.Errorf("wipe the CDI directory: %w", err)
	}
	return nil
}

// ReplaceCDI removes the CDI directory and makes it again. Whoever has it mounted keeps
// the one that was removed.
func (n *Node) ReplaceCDI() error {
	dir := n.Path("/run/cdi")
	var err error
	for range 10 { // a plugin that has it mounted may put a spec back while it is removed
		if err = errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err == nil {
			return nil
		}
	}
	return fmt.Errorf("replace the CDI directory: %w", err)
}

// SetCDIReadOnly makes the CDI directory read-only for a running plugin, or writable
// again. For everybody else it stays as it is.
func (p *Plugin) SetCDIReadOnly(ctx context.Context, ro bool) error {
	mode := "rw"
	if ro {
		mode = "ro"
	}
	_, err := p.box.Run(ctx, filepath.Join(wire.ProgramDir, "inside"), "mount", strconv.Itoa(p.PID()), mode, "/var/run/cdi")
	return err
}

// FillCDI leaves no room on the file system of the CDI directory. The node must have been
// started with one of its own (CDISize).
func (n *Node) FillCDI() error {
	var st unix.Statfs_t
	dir := n.Path("/run/cdi")
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("fill the CDI directory: %w", err)
	}
	err := os.WriteFile(filepath.Join(dir, filler), bytes.Repeat([]byte("x"), int(st.Bavail)*int(st.Bsize)), 0o600)
	if err != nil {
		return fmt.Errorf("fill the CDI directory: %w", err)
	}
	return nil
}

// filler is no CDI spec by its name.
const filler = "filler"

// EmptyCDI ends FillCDI.
func (n *Node) EmptyCDI() error {
	if err := os.Remove(filepath.Join(n.Path("/run/cdi"), filler)); err != nil {
		return fmt.Errorf("empty the CDI directory: %w", err)
	}
	return nil
}

// Rival is another plugin, of whose devices nothing exists.
type Rival struct{ service }

// StartRival registers a rival for a resource, and waits until kubelet has its list.
func (n *Node) StartRival(ctx context.Context, resource string, ids ...string) (*Rival, error) {
	n.plugins++
	r := &Rival{service{box: n.box, name: "rival-" + strconv.Itoa(n.plugins)}}
	err := r.run(ctx, wire.Start{Path: filepath.Join(wire.ProgramDir, "rival"), Args: append([]string{r.name + ".sock", resource}, ids...)})
	if err != nil {
		return nil, err
	}
	return r, Await(ctx, "the rival to be registered", func(context.Context) error {
		text, err := os.ReadFile(n.Log(r.name))
		if err == nil && !bytes.Contains(text, []byte("listed")) {
			err = errors.New(string(text))
		}
		return errors.Join(err, r.died())
	})
}
