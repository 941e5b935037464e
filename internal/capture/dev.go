package capture

import (
	"errors"
	"io/fs"
	"path"

	"kata-device-plugin/internal/host"
)

// Dev is what is below /dev.
type Dev struct{ c *Capture }

var _ host.DevFS = Dev{}

// Dev is what is below /dev.
func (c *Capture) Dev() Dev { return Dev{c} }

// List implements host.DevFS.
func (d Dev) List(dir string) (map[string]host.DevFile, error) {
	at, e, err := d.c.find("open", dir, true)
	if err != nil {
		return nil, err
	}
	names, err := e.list(dir)
	if err != nil {
		return nil, err
	}
	all := make(map[string]host.DevFile, len(names))
	for _, name := range names {
		n, err := d.Lstat(path.Join(at, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went while it was captured
		}
		if err != nil {
			return nil, err
		}
		all[name] = n
	}
	return all, nil
}

// Lstat implements host.DevFS. There are no inodes in a capture: it is a single moment.
func (d Dev) Lstat(name string) (host.DevFile, error) {
	_, e, err := d.c.find("lstat", name, false)
	if err != nil {
		return host.DevFile{}, err
	}
	return host.DevFile{Type: e.fileType(), Major: e.Major, Minor: e.Minor}, nil
}

// DevEntry is the entry of a file below /dev.
func DevEntry(at string, n host.DevFile) Entry {
	e := Entry{Path: at, Kind: Other, Unread: true}
	switch n.Type {
	case 0:
		e.Kind = File
	case fs.ModeDir:
		e.Kind = Dir
	case fs.ModeSymlink:
		e.Kind = Symlink
	case fs.ModeDevice, fs.ModeDevice | fs.ModeCharDevice:
		return Entry{Path: at, Kind: Node, Block: n.Type&fs.ModeCharDevice == 0, Major: n.Major, Minor: n.Minor}
	case fs.ModeNamedPipe:
		e.Kind, e.Unread = FIFO, false
	case fs.ModeSocket:
		e.Kind = Socket
	}
	return e
}
