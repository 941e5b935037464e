// Package devfs reads what is in devtmpfs with lstat alone: no node is ever opened, since a file
// that is open on a VFIO device makes the unbinding of its driver wait.
package devfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sysfs"
)

// Dir is where devtmpfs is mounted for this process, for example /dev. It implements host.DevFS.
type Dir string

var _ host.DevFS = Dir("")

// at is where this process sees a path below /dev.
func (d Dir) at(path string) string { return string(d) + strings.TrimPrefix(path, "/dev") }

// List implements host.DevFS. The directory is opened anew each time, since devtmpfs removes
// /dev/vfio/devices with the last device and makes another with the next.
func (d Dir) List(dir string) (map[string]host.DevFile, error) {
	at := d.at(dir)
	fd, err := unix.Open(at, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: at, Err: err}
	}
	defer unix.Close(fd) // read-only: nothing to lose
	names, err := sysfs.Names(fd)
	if err != nil {
		// ENOENT is that of a directory that devtmpfs has removed since it was opened.
		return nil, fmt.Errorf("list %s: %w", at, err)
	}
	nodes := make(map[string]host.DevFile, len(names))
	for _, name := range names {
		n, err := lstat(fd, name)
		if errors.Is(err, unix.ENOENT) {
			continue // removed since the listing
		}
		if err != nil {
			return nil, &fs.PathError{Op: "lstat", Path: at + "/" + name, Err: err}
		}
		nodes[name] = n
	}
	return nodes, nil
}

// Lstat implements host.DevFS.
func (d Dir) Lstat(path string) (host.DevFile, error) {
	at := d.at(path)
	n, err := lstat(unix.AT_FDCWD, at)
	if err != nil {
		return n, &fs.PathError{Op: "lstat", Path: at, Err: err}
	}
	return n, nil
}

// lstat does not follow links: a link in place of a node is not the kernel's work.
func lstat(dirfd int, name string) (host.DevFile, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return host.DevFile{
			Type:  typeOf(st.Mode),
			Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev),
			Inode: st.Ino, Changed: st.Ctim.Nano(),
		}, err
	}
}

// typeOf is the type of a file as package fs spells it.
func typeOf(mode uint32) fs.FileMode {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFBLK:
		return fs.ModeDevice
	case unix.S_IFCHR:
		return fs.ModeDevice | fs.ModeCharDevice
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFREG:
		return 0
	default:
		return fs.ModeIrregular
	}
}
