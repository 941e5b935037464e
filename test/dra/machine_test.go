//go:build !kubernetes134

package dra

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"tags.cncf.io/container-device-interface/pkg/cdi"

	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/witness"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/plane"
)

const (
	driver  = "vfio.katacontainers.io"
	system  = "kube-system"
	account = "kata-dra-driver"
	gpu     = "nvidia.com/gpu"
	gpuA    = "0000:53:00.0"
	// soon makes the driver ask kubelet and the API server as often as tests want to wait.
	soon = "--poll-interval=200ms"
)

// start starts a cluster that has the driver's manifests, but for what runs it.
func start(t *testing.T, o plane.Options) *plane.Plane {
	t.Helper()
	p := plane.Start(t, o)
	for _, object := range objects() {
		p.Create(t, object)
	}
	return p
}

// objects are the manifests, but for what runs the driver.
func objects() []string {
	return slices.DeleteFunc(strings.Split(built.manifests, "\n---\n"), func(object string) bool {
		return strings.Contains(object, "\nkind: DaemonSet\n") || strings.Contains(object, "\nkind: NetworkPolicy\n")
	})
}

// machine is a node of the cluster with simulated hardware.
type machine struct {
	*plane.Node
	hw    *sim.Node
	t     *testing.T
	plane *plane.Plane
	dir   string
	lives int
}

// join adds a machine of a platform. Its kubelet runs pods.
func join(t *testing.T, p *plane.Plane, name, platform string) *machine {
	t.Helper()
	short, err := sim.TempDir()
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(short)) })
	shape, err := sim.PlatformByName(platform)
	must(t, err)
	dir := filepath.Join(short, "n")
	hw, err := sim.New(dir, shape)
	must(t, err)
	m := &machine{hw: hw, t: t, plane: p, dir: dir}
	roots := hw.Roots("kata-dra-driver")
	must(t, os.MkdirAll(roots.Run, 0o755))
	m.boot(1)
	m.Node = p.Node(t, name, plane.NodeOptions{Root: filepath.Join(dir, "var/lib/kubelet"), CDI: roots.CDI})
	m.Run()
	return m
}

// boot gives the machine a boot of its own.
func (m *machine) boot(number int) {
	m.t.Helper()
	dir := filepath.Join(m.dir, "proc/sys/kernel/random")
	must(m.t, os.MkdirAll(dir, 0o755))
	must(m.t, os.WriteFile(filepath.Join(dir, "boot_id"), fmt.Appendf(nil, "boot-%d\n", number), 0o444))
}

// process is one life of the driver.
type process struct {
	*harness.Plugin
	log *witness.Log
	t   *testing.T
}

// launch starts the driver with the rights that its manifests give it, and does not wait.
func (m *machine) launch(args ...string) *process {
	m.t.Helper()
	m.lives++
	m.PluginDir(m.t, driver)
	d := &process{log: witness.NewLog(func() {}), t: m.t}
	file := m.plane.Kubeconfig(m.t, m.plane.Agent(m.t, system, account, m.Name))
	all := append([]string{
		"--node-name=" + m.Name, "--pod-uid=p" + strconv.Itoa(m.lives), "--kubeconfig=" + file, soon, "--web.listen-address=",
	}, args...)
	var err error
	d.Plugin, err = harness.StartPlugin(context.WithoutCancel(m.t.Context()), built.driver, m.dir, d.log, all...)
	must(m.t, err)
	m.t.Cleanup(func() {
		must(m.t, d.Kill())
		if m.t.Failed() {
			m.t.Logf("the driver's log on %s:\n%s", m.Name, d.log)
		}
	})
	return d
}

// run starts the driver and waits until it is ready.
func (m *machine) run(args ...string) *process {
	m.t.Helper()
	d := m.launch(args...)
	d.await("msg", `"ready"`)
	return d
}

// await waits for a line of the log with some words.
func (d *process) await(words ...string) {
	d.t.Helper()
	plane.Await(d.t, "a log line with "+strings.Join(words, ", "), func(context.Context) error {
		select {
		case <-d.Exited():
			return fmt.Errorf("the driver has ended: %s", d.log)
		default:
		}
		if len(d.log.Lines(words...)) == 0 {
			return errors.New("there is none")
		}
		return nil
	})
}

// stop ends the driver as the removal of its pod does.
func (d *process) stop() {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 20*time.Second)
	defer cancel()
	if code, _, err := d.Terminate(ctx); code != 0 || err != nil {
		d.t.Errorf("stopped with code %d: %v", code, err)
	}
}

// devices are the published devices of a node, by name.
func (m *machine) devices() map[string]resourceapi.Device {
	m.t.Helper()
	return byName(m.plane.Slices(m.t, driver, m.Name))
}

func byName(slices []resourceapi.ResourceSlice) map[string]resourceapi.Device {
	all := map[string]resourceapi.Device{}
	for _, s := range slices {
		for _, d := range s.Spec.Devices {
			all[d.Name] = d
		}
	}
	return all
}

// awaitDevice waits until a device is published with the taints that are given, by key and value,
// or is not published at all where they are nil.
func (m *machine) awaitDevice(name string, taints map[string]string) {
	m.t.Helper()
	m.plane.AwaitSlices(m.t, driver, m.Name, fmt.Sprintf("%s with %v", name, taints), func(now []resourceapi.ResourceSlice) error {
		d, there := byName(now)[name]
		if there != (taints != nil) {
			return fmt.Errorf("it is there: %v", there)
		}
		got := map[string]string{}
		for _, taint := range d.Taints {
			got[strings.TrimPrefix(taint.Key, driver+"/")] = taint.Value
		}
		if there && fmt.Sprint(got) != fmt.Sprint(taints) {
			return fmt.Errorf("it has the taints %v", got)
		}
		return nil
	})
}

// nodes are the device nodes that a running pod's container has been given.
func (m *machine) nodes(pod *v1.Pod) []string {
	m.t.Helper()
	names, err := m.CDIDevices(pod, "c")
	must(m.t, err)
	nodes, err := m.resolve(names)
	must(m.t, err)
	return nodes
}

// resolve finds what CDI names stand for, with the library of container runtimes. It does not look
// whether the nodes are there: they are below the machine's directory.
func (m *machine) resolve(names []string) ([]string, error) {
	cache, err := cdi.NewCache(cdi.WithSpecDirs(m.CDI), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, err
	}
	var nodes []string
	for _, name := range names {
		d := cache.GetDevice(name)
		if d == nil {
			return nil, fmt.Errorf("%s is not known", name)
		}
		for _, n := range d.ContainerEdits.DeviceNodes {
			nodes = append(nodes, n.Path)
		}
	}
	slices.Sort(nodes)
	return nodes, nil
}

// specs are the CDI specs of claims.
func (m *machine) specs() []string {
	m.t.Helper()
	files, err := filepath.Glob(filepath.Join(m.CDI, "kata.dra.*"))
	must(m.t, err)
	return files
}

// records are the files of claims.
func (m *machine) records() []string {
	m.t.Helper()
	files, err := filepath.Glob(filepath.Join(m.Root, "plugins", driver, "claims", "*.json"))
	must(m.t, err)
	return files
}

// awaitEmpty waits until the driver holds nothing.
func (m *machine) awaitEmpty() {
	m.t.Helper()
	plane.Await(m.t, "nothing to be held on "+m.Name, func(context.Context) error {
		if all := append(m.specs(), m.records()...); len(all) > 0 {
			return fmt.Errorf("there is %v", all)
		}
		return nil
	})
}

func address(t *testing.T, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

// deviceName is the name of a device at an address.
func deviceName(kind, address string) string {
	return kind + "-" + strings.NewReplacer(":", "-", ".", "-").Replace(address)
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
