package kernel

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

//go:embed linux/lab.config
var config string

//go:embed linux/pose.c
var pose string

// recipe is raised when the way to build changes, so that no cache hides it.
const recipe = "1"

// poseRule has pose.c built with the PCI quirks.
const poseRule = "obj-$(CONFIG_PCI_QUIRKS) += pose.o\n"

// kernel returns the directory of the kernel that config and pose.c amount to.
func (w *work) kernel(ctx context.Context) (dir string, err error) {
	tree, err := w.source(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(recipe + config + pose))
	dir = filepath.Join(tree, fmt.Sprintf("%x", sum[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := w.install(ctx, toBuild()); err != nil {
		return "", err
	}
	begun := time.Now()
	w.say("building %s on %d CPUs; this takes about ten minutes on two, once", filepath.Base(tree), runtime.NumCPU())
	if err := w.build(ctx, tree, dir); err != nil {
		return "", fmt.Errorf("build the kernel in %s: %w", tree, err)
	}
	w.say("built in %s", time.Since(begun).Round(time.Second))
	return dir, nil
}

// source unpacks the kernel's source, unless it is there.
func (w *work) source(ctx context.Context) (tree string, err error) {
	series := "linux-" + strings.TrimPrefix(sourcePackage, "linux-source-")
	if tree = w.cached(series, sourceTried); tree != "" {
		return tree, nil
	}
	if err := w.install(ctx, toBuild()); err != nil {
		return "", err
	}
	w.say("fetching %s", sourcePackage)
	a, err := w.archive(ctx)
	if err != nil {
		return "", err
	}
	file, version, err := a.fetch(ctx, sourcePackage)
	if err != nil {
		return "", err
	}
	defer os.Remove(file)
	w.compare(sourcePackage, version, sourceTried)
	tree = filepath.Join(w.cache, "linux-"+plain(version))
	unpacked := filepath.Join(tree, "unpacked")
	source := filepath.Join(tree, "source")
	if err := errors.Join(os.RemoveAll(tree), os.MkdirAll(source, 0o755)); err != nil {
		return "", fmt.Errorf("make room for the kernel's source: %w", err)
	}
	w.say("unpacking %s", filepath.Base(tree))
	if _, err := w.run(ctx, "", "dpkg-deb", "-x", file, unpacked); err != nil {
		return "", fmt.Errorf("unpack %s: %w", sourcePackage, err)
	}
	ball := filepath.Join(unpacked, "usr/src", sourcePackage+".tar.xz")
	if _, err := w.run(ctx, "", "nice", "tar", "-C", source, "--strip-components=1", "-xJf", ball); err != nil {
		return "", fmt.Errorf("unpack the kernel's source: %w", err)
	}
	return tree, errors.Join(os.RemoveAll(unpacked), complete(tree))
}

// build builds the kernel and its modules, and keeps of them what a machine needs. The objects stay
// in the tree for the next change of the configuration.
func (w *work) build(ctx context.Context, tree, dir string) error {
	b := &builder{w: w, source: filepath.Join(tree, "source"), objects: filepath.Join(tree, "objects")}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if err := b.compile(ctx, filepath.Join(tree, "build.log")); err != nil {
		return err
	}
	release, err := w.run(ctx, b.objects, "make", "-s", "kernelrelease")
	if err != nil {
		return err
	}
	aside := dir + ".new"
	if err := errors.Join(os.RemoveAll(aside), os.MkdirAll(aside, 0o755),
		os.WriteFile(filepath.Join(aside, "release"), []byte(release), 0o644)); err != nil {
		return err
	}
	keep := map[string]string{"vmlinux": "vmlinux", ".config": "config"}
	for _, m := range modules() {
		found, err := w.run(ctx, b.objects, "find", ".", "-name", m+".ko")
		if err != nil || found == "" {
			return fmt.Errorf("find the module %s: %w", m, errors.Join(err, os.ErrNotExist))
		}
		keep[found] = m + ".ko"
	}
	for from, to := range keep {
		if err := copyFile(filepath.Join(b.objects, from), filepath.Join(aside, to)); err != nil {
			return err
		}
	}
	return os.Rename(aside, dir)
}

// builder runs make out of tree.
type builder struct {
	w               *work
	source, objects string
}

// busy is the mark of a build that goes on, or that was ended.
func (b *builder) busy() string { return b.objects + ".busy" }

// prepare puts pose.c into the source and configures.
func (b *builder) prepare(ctx context.Context) error {
	// make writes its notes of what depends on what in place. Where it was killed they may be cut off.
	if _, err := os.Stat(b.busy()); err == nil {
		if err := os.RemoveAll(b.objects); err != nil {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll(b.objects, 0o755), os.WriteFile(b.busy(), nil, 0o644)); err != nil {
		return err
	}
	quirks := filepath.Join(b.source, "drivers/pci/Makefile")
	rules, err := os.ReadFile(quirks)
	if err != nil {
		return err
	}
	if !strings.Contains(string(rules), poseRule) {
		rules = append(rules, poseRule...)
	}
	if err := errors.Join(replaceFile(quirks, rules), replaceFile(filepath.Join(b.source, "drivers/pci/pose.c"), []byte(pose))); err != nil {
		return err
	}
	if _, err := b.w.run(ctx, "", "make", "-s", "-C", b.source, "O="+b.objects, "ARCH=x86_64", "tinyconfig"); err != nil {
		return err
	}
	// What comes later in the file counts.
	file := filepath.Join(b.objects, ".config")
	base, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(base, config...), 0o644); err != nil {
		return err
	}
	if _, err := b.w.run(ctx, "", "make", "-s", "-C", b.source, "O="+b.objects, "ARCH=x86_64", "olddefconfig"); err != nil {
		return err
	}
	result, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return taken(string(result))
}

// taken checks that every line of config is there still: an option that was renamed, or whose
// dependency is missing, vanishes without a word.
func taken(result string) error {
	var errs []error
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if name, off := strings.CutSuffix(strings.TrimPrefix(line, "# CONFIG_"), " is not set"); off {
			if strings.Contains(result, "\nCONFIG_"+name+"=") {
				errs = append(errs, fmt.Errorf("CONFIG_%s is on all the same", name))
			}
		} else if strings.HasPrefix(line, "CONFIG_") && !strings.Contains(result, "\n"+line+"\n") {
			errs = append(errs, fmt.Errorf("%s was not taken", line))
		}
	}
	return errors.Join(errs...)
}

// compile runs the build itself, and says now and then how far it is.
func (b *builder) compile(ctx context.Context, log string) error {
	f, err := os.Create(log)
	if err != nil {
		return err
	}
	defer f.Close()
	cmd, err := b.w.command(ctx, "nice", "-n", "10", "make", "-C", b.source, "O="+b.objects, "ARCH=x86_64",
		"KBUILD_BUILD_TIMESTAMP=@0", "KBUILD_BUILD_USER=lab", "KBUILD_BUILD_HOST=lab",
		fmt.Sprintf("-j%d", runtime.NumCPU()), "vmlinux", "modules")
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		begun := time.Now()
		tick := time.NewTicker(30 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				text, _ := os.ReadFile(log) // only to tell
				b.w.say("%s, %d files compiled", time.Since(begun).Round(time.Second), strings.Count(string(text), "\n  CC "))
			case <-done:
				return
			}
		}
	}()
	err = cmd.Wait()
	close(done)
	if err != nil {
		text, _ := os.ReadFile(log)
		return fmt.Errorf("make: %w; the end of %s:\n%s", err, log, tail(string(text), 20))
	}
	return os.Remove(b.busy())
}

// replaceFile writes a file aside first, so that it is whole whenever we are killed.
func replaceFile(path string, content []byte) error {
	aside := path + ".new"
	return errors.Join(os.WriteFile(aside, content, 0o644), os.Rename(aside, path))
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
