package kernel

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// toy stands for the kernel's source: its targets do what the kernel's do, in no time. A build leaves
// a half-written file while it lasts, and waits there if it is told to.
const toy = `
tinyconfig:
	: > $(O)/.config
	printf 'kernelrelease:\n\t@echo 6.12-toy\n' > $(O)/Makefile
olddefconfig:
	@true
vmlinux:
	test ! -e $(O)/half.o
	echo >> builds
	: > $(O)/half.o
	if [ -n "$$TOY_BEGUN" ]; then echo begun > "$$TOY_BEGUN"; read line < "$$TOY_GO"; fi
	rm $(O)/half.o
	echo whole > $@; mv $@ $(O)/$@
modules:
	for m in $(TOY_MODULES); do : > $(O)/$$m.ko; done
`

// toyCache is a cache in which the toy's source was unpacked, and two named pipes.
func toyCache(t *testing.T) (cache, begun, goOn string) {
	t.Helper()
	cache = t.TempDir()
	begun, goOn = filepath.Join(cache, "begun"), filepath.Join(cache, "go")
	tree := toyTree(cache)
	err := errors.Join(os.MkdirAll(filepath.Join(tree, "source/drivers/pci"), 0o755),
		os.WriteFile(filepath.Join(tree, "source/drivers/pci/Makefile"), nil, 0o644),
		os.WriteFile(filepath.Join(tree, "source/Makefile"), []byte(toy), 0o644),
		complete(tree), unix.Mkfifo(begun, 0o600), unix.Mkfifo(goOn, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TOY_MODULES", strings.Join(modules(), " "))
	return cache, begun, goOn
}

func toyTree(cache string) string { return filepath.Join(cache, "linux-6.12-toy") }

// prepareToy does what Prepare does with the real kernel's source.
func prepareToy(ctx context.Context, cache string, out io.Writer) (dir string, err error) {
	r, err := newRoom("toy-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	w := &work{out: out, cache: cache, dir: r.dir}
	if err := w.take(); err != nil {
		return "", err
	}
	defer w.release()
	return w.kernel(ctx)
}

// builds is how often the toy was built.
func builds(t *testing.T, cache string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(toyTree(cache), "source/builds"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(text, []byte("\n"))
}

// whole checks that a kernel is all there.
func whole(t *testing.T, dir string) {
	t.Helper()
	for _, name := range append(modules(), "vmlinux", "config", "release") {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			if _, err := os.Stat(filepath.Join(dir, name+".ko")); err != nil {
				t.Error(err)
			}
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "vmlinux")); err != nil || string(text) != "whole\n" {
		t.Errorf("vmlinux is %q: %v", text, err)
	}
}

// A build that was killed is begun anew, without what it has left half-written.
func TestInterruptedBuild(t *testing.T) {
	if cache := os.Getenv(childVariable); cache != "" {
		_, err := prepareToy(t.Context(), cache, os.Stderr)
		t.Fatal(err)
	}
	cache, begun, goOn := toyCache(t)
	v := again(t, cache, "TOY_BEGUN="+begun, "TOY_GO="+goOn)
	firstLine(t, begun)
	v.kill(t)
	dir, err := prepareToy(t.Context(), cache, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	whole(t, dir)
	if n := builds(t, cache); n != 2 {
		t.Errorf("it was built %d times", n)
	}
}

// Of two runs at once one builds; the other waits, and says so, and takes what was built.
func TestConcurrentBuilds(t *testing.T) {
	cache, begun, goOn := toyCache(t)
	t.Setenv("TOY_BEGUN", begun)
	t.Setenv("TOY_GO", goOn)
	var dirs [2]string
	var wg sync.WaitGroup
	said, says := io.Pipe()
	defer says.Close()
	for i, out := range []io.Writer{io.Discard, says} {
		wg.Go(func() {
			dir, err := prepareToy(t.Context(), cache, out)
			if err != nil {
				t.Error(err)
			}
			dirs[i] = dir
		})
		if i == 0 {
			firstLine(t, begun)
		}
	}
	line := make([]byte, 200)
	n, err := said.Read(line)
	if err != nil || !strings.Contains(string(line[:n]), "waiting for another run") {
		t.Errorf("the second says %q: %v", line[:n], err)
	}
	if err := os.WriteFile(goOn, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if dirs[0] != dirs[1] {
		t.Errorf("they have %s and %s", dirs[0], dirs[1])
	}
	whole(t, dirs[0])
	if n := builds(t, cache); n != 1 {
		t.Errorf("it was built %d times", n)
	}
}

// A machine that cannot run this says what it lacks, all of it. In CI that is a failure, and
// elsewhere a skip that is shown.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	w := &work{out: io.Discard, cache: t.TempDir(), dir: t.TempDir()}
	err := w.install(t.Context(), append(toRun(), toBuild()...))
	if !errors.Is(err, ErrMissing) {
		t.Errorf("got %v", err)
	}
	for _, n := range append(toRun(), toBuild()...) {
		if n.program != "" && !strings.Contains(err.Error(), " "+n.pkg) {
			t.Errorf("%q does not name %s", err, n.pkg)
		}
	}
	if _, err := w.kernel(t.Context()); !errors.Is(err, ErrMissing) {
		t.Errorf("without a kernel in the cache: %v", err)
	}
	if os.Geteuid() == 0 { // then they are installed, which may fail too
		complaint := "#!/bin/sh\necho E: no such mirror >&2\nexit 100\n"
		if err := os.WriteFile(filepath.Join(os.Getenv("PATH"), "apt-get"), []byte(complaint), 0o755); err != nil {
			t.Fatal(err)
		}
		err := w.install(t.Context(), toRun())
		if err == nil || !strings.Contains(err.Error(), "install qemu-system-x86: ") || !strings.Contains(err.Error(), "E: no such mirror") {
			t.Errorf("where nothing can be installed: %v", err)
		}
		if err := os.Remove(filepath.Join(os.Getenv("PATH"), "apt-get")); err != nil {
			t.Fatal(err)
		}
	}
	for ci, word := range map[string]string{"": "SKIPPED: ", "true": ""} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKernel$", "-test.v")
		cmd.Env = append(os.Environ(), "CI="+ci)
		out, err := cmd.CombinedOutput()
		if failed := err != nil; failed != (ci != "") {
			t.Errorf("with CI=%q: %v: %s", ci, err, out)
		}
		if want := word + ErrMissing.Error() + ": the Debian packages qemu-system-x86"; !bytes.Contains(out, []byte(want)) {
			t.Errorf("with CI=%q it does not say %q: %s", ci, want, out)
		}
		if skipped := bytes.Contains(out, []byte("SKIP")); skipped != (ci == "") {
			t.Errorf("with CI=%q, skipped is %v: %s", ci, skipped, out)
		}
	}
}
