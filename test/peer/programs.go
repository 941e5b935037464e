package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// The modules whose versions are those of the programs. To raise one, edit its go.mod;
// the name of its directory in the cache changes with it.
const (
	product          = "kata-device-plugin"
	testModule       = "kata-device-plugin/test"
	kubernetesModule = "k8s.io/kubernetes"
	containerdModule = "github.com/containerd/containerd/v2"
	etcdModule       = "go.etcd.io/etcd/server/v3"
	probeModule      = "github.com/grpc-ecosystem/grpc-health-probe"
)

// The programs of a control plane.
const (
	etcdName    = "etcd"
	apiServer   = "kube-apiserver"
	controllers = "kube-controller-manager"
	scheduler   = "kube-scheduler"
)

// Programs are what runs on a node and in a control plane, by name.
type Programs struct {
	paths map[string]string
	own   stateDir // of those that were built for this run alone
	main  string   // directories of the project's modules
	test  string
}

// Close removes what was built for this run. The cache stays.
func (p *Programs) Close() error { return p.own.remove() }

// Build makes the programs of a node, and looks for those that come from the system. It
// says on progress what it is doing, since from an empty cache that takes minutes. What
// is missing on the machine is a *MissingError.
func Build(ctx context.Context, progress io.Writer) (*Programs, error) {
	return assemble(ctx, progress, (*Programs).node)
}

// BuildCluster makes the programs of a control plane as well.
func BuildCluster(ctx context.Context, progress io.Writer) (*Programs, error) {
	return assemble(ctx, progress, (*Programs).node, (*Programs).controlPlane)
}

// assemble finds and builds programs.
func assemble(ctx context.Context, progress io.Writer, parts ...func(*Programs, context.Context, io.Writer) error) (*Programs, error) {
	p := &Programs{paths: map[string]string{}}
	if err := p.find(); err != nil {
		return nil, err
	}
	root, err := goRun(ctx, "", nil, "list", "-m", "-f", "{{.Dir}}", product, testModule)
	if err != nil {
		return nil, fmt.Errorf("find the modules: %w", err)
	}
	p.main, p.test, _ = strings.Cut(root, "\n")
	if p.own, err = newStateDir(); err != nil {
		return nil, err
	}
	for _, part := range parts {
		err = errors.Join(err, part(p, ctx, progress))
	}
	if err = errors.Join(err, p.fresh(ctx)); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// node builds what takes long, unless it is there already in this version.
func (p *Programs) node(ctx context.Context, progress io.Writer) error {
	runtimeDir, probeDir := filepath.Join(p.test, "peer/build/containerd"), filepath.Join(p.main, "tools/probe")
	kubernetes, stamp, err1 := p.kubernetes(ctx)
	containerd, err2 := version(ctx, runtimeDir, containerdModule)
	probe, err3 := version(ctx, probeDir, probeModule)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	shim := "-s -w -X " + containerdModule + "/version.Version=" + strings.TrimPrefix(containerd, "v")
	return errors.Join(
		p.cache(ctx, progress, "kubelet-"+kubernetes, build{dir: p.test, flags: stamp, packages: []string{testModule + "/peer/build/kubelet"}}),
		p.cache(ctx, progress, "containerd-"+containerd, build{dir: runtimeDir, cgo: "0",
			flags:    []string{"-trimpath", "-tags=urfave_cli_no_docs", "-ldflags=" + shim},
			packages: []string{containerdModule + "/cmd/containerd", containerdModule + "/cmd/containerd-shim-runc-v2", containerdModule + "/cmd/ctr"}}),
		p.cache(ctx, progress, "grpc-health-probe-"+probe, build{dir: probeDir, cgo: "0",
			flags: []string{"-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w"}, packages: []string{probeModule}}),
	)
}

// controlPlane builds the rest of Kubernetes, and what it keeps its state in.
func (p *Programs) controlPlane(ctx context.Context, progress io.Writer) error {
	etcdDir := filepath.Join(p.test, "peer/build/etcd")
	kubernetes, stamp, err1 := p.kubernetes(ctx)
	etcd, err2 := version(ctx, etcdDir, etcdModule)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var packages []string
	for _, name := range []string{apiServer, controllers, scheduler} {
		packages = append(packages, testModule+"/peer/build/"+name)
	}
	err := errors.Join(
		p.cache(ctx, progress, "control-plane-"+kubernetes, build{dir: p.test, flags: stamp, packages: packages}),
		p.cache(ctx, progress, "etcd-"+etcd, build{dir: etcdDir, cgo: "0", flags: []string{"-trimpath", "-ldflags=-s -w"}, packages: []string{etcdModule}}),
	)
	p.paths[etcdName] = p.paths["server"] // its package's name
	delete(p.paths, "server")
	return err
}

// kubernetes is the version of Kubernetes, and the flags to build its programs with: with
// cgo as the module's tests are built, since they share their build cache; and with a
// stamp, without which a program would call itself v0.0.0-master.
func (p *Programs) kubernetes(ctx context.Context) (v string, flags []string, err error) {
	if v, err = version(ctx, p.test, kubernetesModule); err != nil {
		return "", nil, err
	}
	const stamps = "-s -w -X %[1]s.gitVersion=%[3]s -X %[1]s.gitMajor=1 -X %[1]s.gitMinor=%[4]s" +
		" -X %[2]s.gitVersion=%[3]s -X %[2]s.gitMajor=1 -X %[2]s.gitMinor=%[4]s"
	minor, _, _ := strings.Cut(strings.TrimPrefix(v, "v1."), ".")
	stamp := fmt.Sprintf(stamps, "k8s.io/component-base/version", "k8s.io/client-go/pkg/version", v, minor)
	return v, []string{"-tags=kubernetes", "-ldflags=" + stamp}, nil
}

// fresh builds what is the project's own, every time: go knows best whether it changed.
func (p *Programs) fresh(ctx context.Context) error {
	return errors.Join(
		p.build(ctx, p.own.path, build{dir: p.main, cgo: "0", packages: []string{product + "/cmd/kata-device-plugin"},
			flags: []string{"-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w -buildid= -X main.version=peer"}}),
		p.build(ctx, p.own.path, build{dir: p.test, cgo: "0", packages: []string{testModule + "/peer/cmd/inside"}}),
		p.build(ctx, p.own.path, build{dir: p.test, packages: []string{testModule + "/peer/cmd/rival"}}),
	)
}
