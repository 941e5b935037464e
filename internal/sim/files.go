package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// file is one regular file of a sysfs directory.
type file struct {
	name string
	mode uint32
	text string
	size int64 // of a file with a hole behind the text; zero for none
}

// sys and dev are the real places of paths below /sys and /dev.
func (n *Node) sys(rel string) string { return filepath.Join(n.roots.Sys, rel) }
func (n *Node) dev(rel string) string { return filepath.Join(n.roots.Dev, rel) }

// scratch is a fresh name in a directory on the same file system. What is to
// appear or vanish at once is built or taken apart there.
func (n *Node) scratch() string {
	n.seq++
	return filepath.Join(n.dir, scratchDir, strconv.Itoa(n.seq))
}

// writeFile creates a file with exactly this mode, whatever the umask is. It goes
// past package os, whose poller would cost two more system calls for each of the
// tens of thousands of files of a large machine; for the same reason it sets the
// mode only where the common umask 022 is in the way or the umask is another.
func (n *Node) writeFile(name string, f file) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, f.mode)
	if err != nil {
		return &fs.PathError{Op: "create", Path: name, Err: err}
	}
	if n.umask || f.mode&0o022 != 0 {
		err = unix.Fchmod(fd, f.mode)
	}
	for b := []byte(f.text); err == nil && len(b) > 0; {
		var k int
		k, err = unix.Write(fd, b)
		b = b[max(k, 0):]
	}
	if err == nil && f.size > 0 {
		err = unix.Ftruncate(fd, f.size)
	}
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}

// mkdir makes a directory with mode 0755, whatever the umask is.
func (n *Node) mkdir(name string) error {
	err := os.Mkdir(name, 0o755)
	if err == nil && n.umask {
		err = os.Chmod(name, 0o755)
	}
	return err
}

// mkdirAll makes a directory and those above it that are missing.
func (n *Node) mkdirAll(name string) error {
	err := n.mkdir(name)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(name) != name {
		if err = n.mkdirAll(filepath.Dir(name)); err == nil {
			err = n.mkdir(name)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// replaceFile rewrites a file so that a reader sees the old or the new text.
func (n *Node) replaceFile(name string, mode uint32, text string) error {
	if aside, ok := n.broken[name]; ok {
		name = aside // an unreadable attribute keeps its value for later
	}
	tmp := n.scratch()
	if err := n.writeFile(tmp, file{mode: mode, text: text}); err != nil {
		return err
	}
	if err := os.Rename(tmp, name); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return nil
}

// linkText is the target of a link from one path below /sys to another, spelled as
// the kernel does (kernfs_get_target_path in fs/kernfs/symlink.c): up to the lowest
// directory that holds both, then down.
func linkText(from, to string) string {
	f, t := strings.Split(path.Dir(from), "/"), strings.Split(to, "/")
	common := 0
	for common < len(f) && common < len(t)-1 && f[common] == t[common] {
		common++
	}
	return strings.Repeat("../", len(f)-common) + strings.Join(t[common:], "/")
}

// link makes a symbolic link; both paths are below /sys.
func (n *Node) link(from, to string) error { return os.Symlink(linkText(from, to), n.sys(from)) }

// publish makes a directory below /sys appear complete: files and links, which map
// names to paths below /sys, are made aside and renamed into place together.
func (n *Node) publish(dir string, subdirs []string, files []file, links map[string]string) error {
	tmp := n.scratch()
	if err := n.mkdir(tmp); err != nil {
		return err
	}
	err := func() error {
		for _, d := range subdirs {
			if err := n.mkdir(filepath.Join(tmp, d)); err != nil {
				return err
			}
		}
		for _, f := range files {
			if err := n.writeFile(filepath.Join(tmp, f.name), f); err != nil {
				return err
			}
		}
		for name, to := range links {
			if err := os.Symlink(linkText(dir+"/"+name, to), filepath.Join(tmp, name)); err != nil {
				return err
			}
		}
		return unix.Rename(tmp, n.sys(dir))
	}()
	if err != nil {
		return errors.Join(fmt.Errorf("make directory %s: %w", n.sys(dir), err), os.RemoveAll(tmp))
	}
	return nil
}

// withdraw makes a directory below /sys vanish with all it holds, at once.
func (n *Node) withdraw(dir string) error {
	tmp := n.scratch()
	if err := os.Rename(n.sys(dir), tmp); err != nil {
		return err
	}
	for name := range n.broken {
		if strings.HasPrefix(name, n.sys(dir)+"/") {
			delete(n.broken, name)
		}
	}
	return os.RemoveAll(tmp)
}

// unlink removes a link, a file or an empty directory below /sys that may have gone
// already.
func (n *Node) unlink(rel string) error {
	delete(n.broken, n.sys(rel))
	if err := os.Remove(n.sys(rel)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ensureDir makes a directory and those above it, below /sys.
func (n *Node) ensureDir(dirs ...string) error {
	for _, d := range dirs {
		if err := n.mkdirAll(n.sys(d)); err != nil {
			return err
		}
	}
	return nil
}

// ensureFiles makes those files below /sys that are not there yet.
func (n *Node) ensureFiles(dir string, files ...file) error {
	for _, f := range files {
		err := n.writeFile(n.sys(path.Join(dir, f.name)), f)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
