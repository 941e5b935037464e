package peer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The modules whose versions are those of the programs. To raise one, edit its go.mod;
// the name of its directory in the cache changes with it.
const (
	product          = "kata-device-plugin"
	testModule       = "kata-device-plugin/test"
	kubernetesModule = "k8s.io/kubernetes"
	containerdModule = "github.com/containerd/containerd/v2"
	probeModule      = "github.com/grpc-ecosystem/grpc-health-probe"
)

// Programs are what runs on a node, by name.
type Programs struct {
	paths map[string]string
	own   string // directory of those that were built for this run alone
}

// Close removes what was built for this run. The cache stays.
func (p *Programs) Close() error { return os.RemoveAll(p.own) }

// build is one call of the go command.
type build struct {
	dir      string // the module's, below which go is run
	cgo      string // CGO_ENABLED; empty leaves it to go
	flags    []string
	packages []string // import paths; each gives a program
}

// Build makes the programs of a node, and looks for those that come from the system. It
// says on progress what it is doing, since from an empty cache that takes minutes. What
// is missing on the machine is a *MissingError.
func Build(ctx context.Context, progress io.Writer) (*Programs, error) {
	p := &Programs{paths: map[string]string{}}
	if err := p.find(); err != nil {
		return nil, err
	}
	root, err := goRun(ctx, "", "", "list", "-m", "-f", "{{.Dir}}", product, testModule)
	if err != nil {
		return nil, fmt.Errorf("find the modules: %w", err)
	}
	main, test, _ := strings.Cut(root, "\n")
	if p.own, err = os.MkdirTemp("", statePrefix+strconv.Itoa(os.Getpid())+"-programs-"); err != nil {
		return nil, fmt.Errorf("build the node's programs: %w", err)
	}
	err = errors.Join(p.cached(ctx, progress, main, test), p.fresh(ctx, main, test))
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// cached builds what takes long, unless it is there already in this version.
func (p *Programs) cached(ctx context.Context, progress io.Writer, main, test string) error {
	runtimeDir, probeDir := filepath.Join(test, "peer/build/containerd"), filepath.Join(main, "tools/probe")
	kubernetes, err1 := version(ctx, test, kubernetesModule)
	containerd, err2 := version(ctx, runtimeDir, containerdModule)
	probe, err3 := version(ctx, probeDir, probeModule)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	// Without the stamp it would call itself v0.0.0-master.
	const stamps = "-s -w -X %[1]s.gitVersion=%[3]s -X %[1]s.gitMajor=1 -X %[1]s.gitMinor=%[4]s" +
		" -X %[2]s.gitVersion=%[3]s -X %[2]s.gitMajor=1 -X %[2]s.gitMinor=%[4]s"
	minor, _, _ := strings.Cut(strings.TrimPrefix(kubernetes, "v1."), ".")
	stamp := fmt.Sprintf(stamps, "k8s.io/component-base/version", "k8s.io/client-go/pkg/version", kubernetes, minor)
	shim := "-s -w -X " + containerdModule + "/version.Version=" + strings.TrimPrefix(containerd, "v")
	return errors.Join(
		// With cgo as the module's tests are built, since it shares their build cache.
		p.cache(ctx, progress, "kubelet-"+kubernetes, build{dir: test,
			flags: []string{"-tags=kubelet", "-ldflags=" + stamp}, packages: []string{testModule + "/peer/build/kubelet"}}),
		p.cache(ctx, progress, "containerd-"+containerd, build{dir: runtimeDir, cgo: "0",
			flags:    []string{"-trimpath", "-tags=urfave_cli_no_docs", "-ldflags=" + shim},
			packages: []string{containerdModule + "/cmd/containerd", containerdModule + "/cmd/containerd-shim-runc-v2", containerdModule + "/cmd/ctr"}}),
		p.cache(ctx, progress, "grpc-health-probe-"+probe, build{dir: probeDir, cgo: "0",
			flags: []string{"-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w"}, packages: []string{probeModule}}),
	)
}

// fresh builds what is the project's own, every time: go knows best whether it changed.
func (p *Programs) fresh(ctx context.Context, main, test string) error {
	return errors.Join(
		p.build(ctx, p.own, build{dir: main, cgo: "0", packages: []string{product + "/cmd/kata-device-plugin"},
			flags: []string{"-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w -buildid= -X main.version=peer"}}),
		p.build(ctx, p.own, build{dir: test, cgo: "0", packages: []string{testModule + "/peer/cmd/inside"}}),
		p.build(ctx, p.own, build{dir: test, packages: []string{testModule + "/peer/cmd/rival"}}),
	)
}

// cache fills a directory of the user's cache whose name says what is in it.
func (p *Programs) cache(ctx context.Context, progress io.Writer, name string, b build) error {
	user, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("find a place for %s: %w", name, err)
	}
	mod, err := os.ReadFile(filepath.Join(b.dir, "go.mod"))
	if err != nil {
		return fmt.Errorf("find out what %s is made of: %w", name, err)
	}
	sum := sha256.Sum256(fmt.Appendf(mod, "%s %s %q %q", runtime.Version(), runtime.GOARCH, b.flags, b.packages))
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
	aside, err := os.MkdirTemp(filepath.Dir(dir), ".building-")
	if err != nil {
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
	if err := errors.Join(os.Chmod(aside, 0o755), os.Rename(aside, dir)); err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	p.add(dir, b)
	return nil
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
	if _, err := goRun(ctx, b.dir, b.cgo, append(args, b.packages...)...); err != nil {
		return fmt.Errorf("build %s: %w", b.packages[0], err)
	}
	p.add(out, b)
	return nil
}

func (p *Programs) add(dir string, b build) {
	for _, pkg := range b.packages {
		name := filepath.Base(pkg)
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
	v, err := goRun(ctx, dir, "", "list", "-m", "-f", "{{.Version}}", module)
	if err != nil {
		return "", fmt.Errorf("find the version of %s: %w", module, err)
	}
	return v, nil
}

// goRun runs the go command in a directory and returns what it printed.
func goRun(ctx context.Context, dir, cgo string, args ...string) (string, error) {
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &complaint
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	if cgo != "" {
		cmd.Env = append(cmd.Env, "CGO_ENABLED="+cgo)
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
