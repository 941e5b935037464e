package capture

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kata-device-plugin/internal/host"
)

// Tree is a node to look at instead of this one: a capture, or a directory.
type Tree struct {
	Sys   fs.ReadLinkFS
	Dev   host.DevFS
	Links func() (*host.Links, error)
	// Files are all files, from the root.
	Files fs.FS
	// Capture is nil for a directory.
	Capture *Capture
}

// Source is what a look at it reads. What it wants is to be filled in.
func (t *Tree) Source() host.Source { return host.Source{Sys: t.Sys, Dev: t.Dev, Links: t.Links} }

// Tree is the captured node.
func (c *Capture) Tree() *Tree {
	return &Tree{Sys: c.Sys(), Dev: c.Dev(), Links: c.ReadLinks, Files: c.FS(), Capture: c}
}

// ReadLinks is what netlink showed, for host.Source.Links.
func (c *Capture) ReadLinks() (*host.Links, error) {
	switch {
	case c.LinksErr != "":
		return nil, errors.New(c.LinksErr)
	case c.Links == nil:
		return nil, fmt.Errorf("read links: %w", ErrNotCaptured)
	}
	return c.Links, nil
}

// Open opens the node at a path: a file that holds a capture, or a directory that has sys, dev and
// the rest of a node in it.
func Open(name string) (*Tree, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("open captured node: %w", err)
	}
	if info.IsDir() {
		return openDirectory(name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open captured node: %w", err)
	}
	defer f.Close()
	c, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c.Tree(), nil
}

func openDirectory(name string) (*Tree, error) {
	sys := filepath.Join(name, "sys")
	if info, err := os.Stat(sys); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("open captured node %s: it has no directory sys: "+
			"want the root of a node's files, or a file that `kubectl device snapshot` wrote", name)
	}
	noLinks := func() (*host.Links, error) { return nil, fmt.Errorf("read links of %s: only netlink tells them", name) }
	at, ok := os.DirFS(sys).(fs.ReadLinkFS)
	if !ok {
		return nil, fmt.Errorf("open captured node %s: this system's files have no links", name)
	}
	return &Tree{Sys: at, Dev: nodesBelow(filepath.Join(name, "dev")), Links: noLinks, Files: os.DirFS(name)}, nil
}
