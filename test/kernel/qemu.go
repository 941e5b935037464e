package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// QEMU is a program that emulates machines.
type QEMU struct {
	Program string
	Args    []string // where its firmware is
	Env     []string // where its modules are
	Version string
}

const emulator = "qemu-system-x86_64"

// qemus are the installed QEMU, and one with virtual functions: the same, or one of its own.
func (w *work) qemus(ctx context.Context) (small, sriov QEMU, err error) {
	version, err := w.run(ctx, "", emulator, "--version")
	if err != nil {
		return small, sriov, err
	}
	small = QEMU{Program: emulator, Version: numbers(version)}
	if major, err := strconv.Atoi(strings.Split(small.Version, ".")[0]); err != nil {
		return small, sriov, fmt.Errorf("read the version of QEMU from %q: %w", version, err)
	} else if major >= qemuSRIOV {
		return small, small, nil
	}
	dir := w.cached("qemu-", qemuTried)
	if dir == "" {
		if dir, err = w.unpackQEMU(ctx); err != nil {
			return small, sriov, fmt.Errorf("get a QEMU of version %d or later: %w", qemuSRIOV, err)
		}
	}
	sriov = QEMU{
		Program: filepath.Join(dir, "usr/bin", emulator),
		Args: []string{"-L", filepath.Join(dir, "usr/share/qemu"), "-L", filepath.Join(dir, "usr/share/seabios"),
			"-L", "/usr/lib/ipxe/qemu"}, // boot ROMs of network cards, as the installed QEMU has them
		Env: []string{"QEMU_MODULE_DIR=" + filepath.Join(dir, "usr/lib/x86_64-linux-gnu/qemu")},
	}
	if version, err = w.run(ctx, "", sriov.Program, "--version"); err != nil {
		return small, sriov, fmt.Errorf("start the QEMU in %s: %w", dir, err)
	}
	sriov.Version = numbers(version)
	return small, sriov, nil
}

// numbers is the version in "QEMU emulator version 7.2.22 (Debian ...)".
func numbers(text string) string {
	if words := strings.Fields(text); len(words) > 3 {
		return words[3]
	}
	return text
}

func (w *work) unpackQEMU(ctx context.Context) (dir string, err error) {
	w.say("fetching %s", qemuPackages()[0])
	a, err := w.archive(ctx)
	if err != nil {
		return "", err
	}
	for i, pkg := range qemuPackages() {
		file, version, err := a.fetch(ctx, pkg)
		if err != nil {
			return "", err
		}
		if i == 0 {
			w.compare(pkg, version, qemuTried)
			dir = filepath.Join(w.cache, "qemu-"+plain(version))
			if err := os.RemoveAll(dir); err != nil {
				return "", err
			}
		}
		_, err = w.run(ctx, "", "dpkg-deb", "-x", file, dir)
		if err := errors.Join(err, os.Remove(file)); err != nil {
			return "", err
		}
	}
	return dir, complete(dir)
}
