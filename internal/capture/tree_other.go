//go:build !linux

package capture

import (
	"errors"
	"io/fs"

	"kata-device-plugin/internal/host"
)

var errNodes = errors.New("only Linux tells the numbers of device nodes: take a snapshot on the node instead")

// untold is a directory of nodes that this system knows nothing of.
type untold string

func nodesBelow(dir string) host.DevFS { return untold(dir) }

// List implements host.DevFS.
func (untold) List(dir string) (map[string]host.DevFile, error) {
	return nil, &fs.PathError{Op: "open", Path: dir, Err: errNodes}
}

// Lstat implements host.DevFS.
func (untold) Lstat(path string) (host.DevFile, error) {
	return host.DevFile{}, &fs.PathError{Op: "lstat", Path: path, Err: errNodes}
}
