package peer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// build is one call of the go command.
type build struct {
	dir      string // the module's, below which go is run
	cgo      string // CGO_ENABLED; empty leaves it to go
	flags    []string
	packages []string // import paths; each gives a program
}

// cache fills a directory of the user's cache whose name says what is in it.
func (p *Programs) cache(ctx context.Context, progress io.Writer, name string, b build) error {
	user, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("find a place for %s: %w", name, err)
	}
	modules, err := goRun(ctx, b.dir, nil, "list", "-m", "-f", "{{.Path}} {{.Version}} {{with .Replace}}{{.Path}} {{.Version}}{{end}}", "all")
	if err != nil {
		return fmt.Errorf("find out what %s is made of: %w", name, err)
	}
	own, err := b.sources()
	if err != nil {
		return fmt.Errorf("find out what %s is made of: %w", name, err)
	}
	sum := sha256.Sum256(fmt.Appendf([]byte(modules), "%s %s %s %q %q %s", runtime.Version(), runtime.GOARCH, b.cgo, b.flags, b.packages, own))
	dir := filepath.Join(user, product, "peer", name+"-"+hex.EncodeToString(sum[:4]))
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make a place for %s: %w", name, err)
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		p.add(dir, b)
		return nil
	}
	aside := dir + ".new" // of one name, so that what a killed run left is replaced
	if err := errors.Join(os.RemoveAll(aside), os.Mkdir(aside, 0o755)); err != nil {
		return fmt.Errorf("build %s: %w", name, err)
	}
	defer os.RemoveAll(aside)
	fmt.Fprintf(progress, "peer: building %s, once for %s\n", name, dir)
	started := time.Now()
	done := report(progress, name, started)
	err = p.build(ctx, aside, b)
	done()
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "peer: built %s in %.0f s\n", name, time.Since(started).Seconds())
	if err := os.Rename(aside, dir); err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	p.add(dir, b)
	return nil
}

// sources are the files that are the project's own, which have no version.
func (b build) sources() ([]byte, error) {
	var all []byte
	for _, pkg := range b.packages {
		below, own := strings.CutPrefix(pkg, testModule)
		if !own {
			continue
		}
		files, err := filepath.Glob(filepath.Join(b.dir, below, "*.go"))
		for _, file := range files {
			text, e := os.ReadFile(file)
			all, err = append(all, text...), errors.Join(err, e)
		}
		if err == nil && files == nil {
			err = fs.ErrNotExist
		}
		if err != nil {
			return nil, fmt.Errorf("read the sources of %s: %w", pkg, err)
		}
	}
	return all, nil
}

// report prints a line every half minute until it is told that the work is done.
func report(progress io.Writer, name string, started time.Time) (done func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(30 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				fmt.Fprintf(progress, "peer: still building %s, %.0f s\n", name, time.Since(started).Seconds())
			}
		}
	}()
	return func() { close(stop); <-stopped }
}

func (p *Programs) build(ctx context.Context, out string, b build) error {
	args := append([]string{"build", "-buildvcs=false", "-o", out + "/"}, b.flags...)
	// What go makes on its way is there as well, for whoever removes what a killed run left.
	env := []string{"GOTMPDIR=" + out}
	if b.cgo != "" {
		env = append(env, "CGO_ENABLED="+b.cgo)
	}
	if _, err := goRun(ctx, b.dir, env, append(args, b.packages...)...); err != nil {
		return fmt.Errorf("build %s: %w", b.packages[0], err)
	}
	p.add(out, b)
	return nil
}

func (p *Programs) add(dir string, b build) {
	for _, pkg := range b.packages {
		name := filepath.Base(pkg)
		if regexp.MustCompile(`^v\d+$`).MatchString(name) {
			name = filepath.Base(filepath.Dir(pkg)) // as go build does: a version is no name
		}
		p.paths[name] = filepath.Join(dir, name)
	}
}

// lock keeps another run from building the same thing.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

func version(ctx context.Context, dir, module string) (string, error) {
	v, err := goRun(ctx, dir, nil, "list", "-m", "-f", "{{.Version}}", module)
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", module, err)
	}
	return v, nil
}

// goRun runs the go command in a directory and returns what it printed.
func goRun(ctx context.Context, dir string, env []string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &complaint
	cmd.Env = append(append(cmd.Environ(), "GOWORK=off"), env...)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
