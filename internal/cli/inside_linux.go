package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// insideName is the command by which this program calls itself.
const insideName = "run-inside"

// insideCommand puts a simulated node's directories over those of this machine, in the mount namespace
// that it runs in, and becomes the command.
func insideCommand() *cobra.Command {
	return &cobra.Command{
		Use: insideName, Hidden: true, Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			command, err := exec.LookPath(args[1])
			if err != nil && args[1] == program {
				command, err = "/proc/self/exe", nil // this program need not be in the PATH
			}
			if err != nil {
				return unusable(err, "")
			}
			if err := mountNode(args[0]); err != nil {
				return fmt.Errorf("put a simulated node over this one: %w", err)
			}
			return unix.Exec(command, args[1:], os.Environ()) //nolint:forbidigo // it is handed on, not read
		},
	}
}

// devices are what a command needs of the machine's own /dev.
func devices() []string {
	return []string{"full", "null", "ptmx", "pts", "random", "shm", "tty", "urandom", "zero"}
}

func mountNode(dir string) error {
	// What is mounted here is to be seen nowhere else.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return &os.PathError{Op: "make private", Path: "/", Err: err}
	}
	for _, name := range devices() {
		if err := bringAlong(filepath.Join("/dev", name), filepath.Join(dir, "dev", name)); err != nil {
			return err
		}
	}
	for _, at := range []string{"sys", "dev", "var/lib/kubelet", "var/run/cdi"} {
		from, to := filepath.Join(dir, at), "/"+at
		if err := errors.Join(os.MkdirAll(from, 0o755), ensure(to), bind(from, to)); err != nil {
			return err
		}
	}
	return nil
}

// bringAlong binds something of this machine to a place that it makes, if there is such a thing.
func bringAlong(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return nil //nolint:nilerr // the command does without it, as on a machine that has none
	}
	if info.IsDir() {
		return errors.Join(os.MkdirAll(to, 0o755), bind(from, to))
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), bind(from, to))
}

func bind(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return &os.LinkError{Op: "bind", Old: from, New: to, Err: err}
	}
	return nil
}

// ensure makes a directory without making it on this machine: the nearest one that exists is covered
// with one in memory, which has all that was there.
func ensure(dir string) error {
	above := dir
	for {
		there, err := exists(above)
		if err != nil {
			return err
		}
		if there {
			break
		}
		above = filepath.Dir(above)
	}
	if above == dir {
		return nil
	}
	if above == "/" {
		return fmt.Errorf("there is no %s, and / cannot be covered: make the directory", dir)
	}
	if err := cover(above); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o755)
}

// cover mounts a tmpfs, and binds to it what it hides.
func cover(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	hidden, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(hidden)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
		return &os.PathError{Op: "mount tmpfs on", Path: dir, Err: err}
	}
	for _, e := range entries {
		from, to := fmt.Sprintf("/proc/self/fd/%d/%s", hidden, e.Name()), filepath.Join(dir, e.Name())
		if e.Type()&os.ModeSymlink != 0 {
			target, err := os.Readlink(from)
			if err == nil {
				err = os.Symlink(target, to)
			}
			if err != nil {
				return err
			}
			continue
		}
		if strings.HasSuffix(e.Name(), ".sock") || e.Type()&(os.ModeSocket|os.ModeNamedPipe) != 0 {
			continue
		}
		if err := bringAlong(from, to); err != nil {
			return err
		}
	}
	return nil
}
