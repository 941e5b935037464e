package exporter

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/exporter/gather"
	"kata-device-plugin/internal/nodelock"
	"kata-device-plugin/internal/nodestate"
)

// lie is a way in which what a scrape tells could be untrue.
type lie struct {
	name string
	// happens is what becomes of the node.
	happens func(*node)
	// silent are the sources that do not answer then, and gone the metrics that have no series once that has
	// lasted. All others that the node had have theirs.
	silent []nodestate.Source
	// partly are those that do not answer in full, which do not get old.
	partly []nodestate.Source
	gone   []string
	// told are series that there are, at once and later, and late those that there are once it has lasted.
	told, late map[string][]string
}

// lies are about everything that metrics rest on but the hardware.
func lies() []lie {
	record := []string{"kubelet_registered", "resource_free", `allocations_not_released{source="checkpoint"}`}
	specs := []string{"cdi_devices", "cdi_specs", `allocations_not_released{source="cdi_specs"}`}
	const released = `allocations_not_released{source=`
	claims := []string{"claims", released + `"claim_records"}`, released + `"cdi_specs"}`}
	instead := func(name string, do func(path string) error) lie {
		return lie{name: name, silent: sources(nodestate.Record), gone: record, happens: func(n *node) {
			must(n.t, os.Remove(n.CheckpointPath()), do(n.CheckpointPath()))
		}}
	}
	return slices.Concat([]lie{
		{name: "nothing"},
		instead("the record is a directory", func(path string) error { return os.Mkdir(path, 0o700) }),
		instead("the record is a pipe", func(path string) error { return unix.Mkfifo(path, 0o600) }),
		instead("the record is a link", func(path string) error { return os.Symlink("/dev/null", path) }),
		instead("the record is half of one", func(path string) error { return os.WriteFile(path, []byte(`{"Data":{"PodDev`), 0o600) }),
		{name: "kubelet has no record", happens: func(n *node) {
			must(n.t, os.Remove(n.CheckpointPath()))
		}, told: map[string][]string{"kubelet_registered": both(0, 0), "resource_free": both(7, 4)}},
		{name: "there was no record, and then something else", happens: func(n *node) {
			must(n.t, os.Remove(n.CheckpointPath()))
			n.pass(time.Second)
			must(n.t, os.Mkdir(n.CheckpointPath(), 0o700))
		}, silent: sources(nodestate.Record), gone: record},
		{name: "kubelet's directory has gone", happens: func(n *node) { must(n.t, os.RemoveAll(n.roots.DevicePlugins)) },
			silent: sources(nodestate.Record, nodestate.Sockets), gone: append(record, "kubelet_plugin_sockets")},
		{name: "kubelet's directory was made anew", happens: func(n *node) { n.anew(n.roots.DevicePlugins) },
			silent: sources(nodestate.Record, nodestate.Sockets), gone: append(record, "kubelet_plugin_sockets")},
		{name: "the CDI directory was made anew", happens: func(n *node) { n.anew(n.roots.CDI) },
			silent: sources(nodestate.Specs, nodestate.Locks), gone: append(specs, "resource_owner_info")},
		{name: "the CDI directory is none", happens: func(n *node) {
			must(n.t, os.RemoveAll(n.roots.CDI), os.WriteFile(n.roots.CDI, nil, 0o600))
		}, silent: sources(nodestate.Specs, nodestate.Locks), gone: append(specs, "resource_owner_info")},
		{name: "the driver's directory was made anew", happens: func(n *node) { n.anew(n.driver()) },
			silent: sources(nodestate.Claims), gone: claims},
		{name: "the driver's records are open to all", happens: func(n *node) {
			must(n.t, os.Chmod(filepath.Join(n.driver(), "claims"), 0o755))
		}, silent: sources(nodestate.Claims), gone: claims},
		{name: "a lock is a link", happens: func(n *node) {
			must(n.t, os.Symlink("/dev/null", filepath.Join(n.roots.CDI, "kata.nvidia.com-gpu.lock")))
		}, silent: sources(nodestate.Locks), gone: []string{"resource_owner_info"}},
		{name: "a plugin's queue is full", happens: func(n *node) { n.full("kata-gpu-0a1b2c3d.sock") },
			gone: []string{`kubelet_plugin_sockets{resource="nvidia.com/gpu"`}},
		{name: "a plugin has died", happens: func(n *node) { n.dead("kata-gpu-0a1b2c3d.sock") }, told: map[string][]string{
			"kubelet_plugin_sockets": {`{resource="nvidia.com/gpu",state="dead"} 1`, `{resource="nvidia.com/gpu",state="listening"} 0`,
				`{resource="nvidia.com/nvswitch",state="dead"} 0`, `{resource="nvidia.com/nvswitch",state="listening"} 0`},
		}},
	}, liesOfSpecs(), liesOfUnread(), liesOfHolders())
}

func sources(all ...nodestate.Source) []nodestate.Source { return all }

// both are the series of the node's two resources.
func both(gpus, switches int) []string {
	return []string{fmt.Sprintf(`{resource="nvidia.com/gpu"} %d`, gpus), fmt.Sprintf(`{resource="nvidia.com/nvswitch"} %d`, switches)}
}

// liesOfSpecs are about CDI names.
func liesOfSpecs() []lie {
	counts := func(missing, resolvable, unreadable int) map[string][]string {
		return map[string][]string{"cdi_devices": append(names(gpu, missing, resolvable, 0, unreadable), names("nvidia.com/nvswitch", 0, 4, 0, 0)...)}
	}
	spec := func(n *node) string { return filepath.Join(n.roots.CDI, "kata.nvidia.com-gpu.json") }
	return []lie{
		{name: "a spec is half of one", happens: func(n *node) { must(n.t, os.Truncate(spec(n), 40)) }, told: counts(8, 0, 0)},
		{name: "a spec has gone", happens: func(n *node) { must(n.t, os.Remove(spec(n))) }, told: counts(8, 0, 0)},
		{name: "a spec is private", happens: func(n *node) { must(n.t, os.Chmod(spec(n), 0o600)) }, told: counts(0, 0, 8)},
		{name: "a spec has gone, and its names are where people put specs", happens: func(n *node) {
			must(n.t, os.MkdirAll(n.roots.StaticCDI, 0o755), os.Rename(spec(n), filepath.Join(n.roots.StaticCDI, "gpu.json")))
		}, told: counts(0, 8, 0)},
		{name: "people have a spec with other nodes, which is hidden", happens: func(n *node) {
			static(n, n.GPUs()[1], n.GPUs()[2])
		}, told: counts(0, 8, 0)},
		{name: "the directory of people's specs is none", happens: func(n *node) {
			must(n.t, os.MkdirAll(filepath.Dir(n.roots.StaticCDI), 0o755), os.WriteFile(n.roots.StaticCDI, nil, 0o600))
		}, partly: sources(nodestate.Specs), gone: []string{`allocations_not_released{source="cdi_specs"}`}, told: counts(0, 8, 0)},
		{name: "a spec is about to be written", happens: func(n *node) {
			must(n.t, os.WriteFile(filepath.Join(n.roots.CDI, ".kata.nvidia.com-gpu.json123"), []byte("{"), 0o600))
		}, told: counts(0, 8, 0)},
	}
}

// names are the numbers of a kind's CDI names.
func names(kind string, missing, resolvable, unknown, unreadable int) []string {
	of := func(state string, n int) string { return fmt.Sprintf(`{kind="%s",state="%s"} %d`, kind, state, n) }
	return []string{
		of("conflicting", 0), of("missing", missing), of("resolvable", resolvable), of("stale", 0), of("unknown", unknown), of("unreadable", unreadable),
	}
}

// static is a spec of people's own for a GPU, with the node of another.
func static(n *node, id, other string) {
	n.t.Helper()
	number, _ := n.cdev(other)
	_, err := cdi.NewFile(n.roots.StaticCDI, "people.", gpu).Sync([]cdi.Device{{
		Name: id, Nodes: []cdi.Node{{Path: fmt.Sprintf("/dev/vfio/devices/vfio%d", number), Permissions: "rw"}},
	}})
	must(n.t, err)
}

// liesOfHolders are about who has what.
func liesOfHolders() []lie {
	gives := func(n *node, pods ...*api.PodResources) { n.kubelet.set(func() { n.kubelet.pods = pods }) }
	one := func(n *node) *api.PodResources {
		return pod("ml", "one", container("main", n.kubelet.devices(gpu, n.GPUs()[0])))
	}
	registered := func(n *node) map[string][]string {
		return map[string][]string{gpu: n.GPUs(), "nvidia.com/nvswitch": n.NVSwitches()}
	}
	return []lie{
		{name: "an init container has had more than its pod's containers", happens: func(n *node) {
			n.checkpoint(registered(n), entry("u-1", "main", n.GPUs()[0]),
				entry("u-1", "init", n.GPUs()[0]), entry("u-1", "init", n.GPUs()[5]))
		}, told: map[string][]string{"resource_free": both(6, 4), "resource_allocated": both(1, 0)}},
		{name: "an init container alone has a device, and nobody tells that its pod lives, as the help says", happens: func(n *node) {
			n.checkpoint(registered(n), entry("u-1", "main", n.GPUs()[0]), entry("u-2", "init", n.GPUs()[5]))
		}, told: map[string][]string{"resource_free": both(7, 4), "resource_allocated": both(1, 0)}},
		{name: "kubelet has not tidied up a pod that ended", happens: func(n *node) {
			n.checkpoint(registered(n), entry("u-1", "main", n.GPUs()[0]), entry("u-0", "main", n.GPUs()[5]))
		}, told: map[string][]string{"resource_free": both(7, 4)}},
		{name: "another plugin has the resource's name", happens: func(n *node) {
			n.kubelet.set(func() {
				n.kubelet.offers = map[string][]string{gpu: {"GPU-0", "GPU-1"}, "nvidia.com/nvswitch": n.NVSwitches()}
				n.kubelet.pods = []*api.PodResources{one(n), pod("ml", "two", container("main", n.kubelet.devices(gpu, "GPU-1")))}
			})
		}, told: map[string][]string{
			"resource_free": both(1, 4), "resource_allocatable": both(2, 4), "resource_allocated": both(2, 0),
		}},
		{name: "a monitor looks at a device by a claim", happens: func(n *node) {
			r := n.prepared("c-1", "watch", "gpu", n.GPUs()[0])
			r.Devices[0].Admin = true
			n.record(r)
			n.claimSpec("c-1", "gpu", n.GPUs()[0])
			gives(n, one(n), pod("ml", "monitor", &api.ContainerResources{Name: "main", DynamicResources: []*api.DynamicResource{
				dynamic("ml", "watch", "c-1", n.deviceName("gpu", n.GPUs()[0]))}}))
		}, told: map[string][]string{"resource_contested_devices": nil}},
		{name: "a claim holds what a plugin offers", happens: func(n *node) {
			n.record(n.prepared("c-1", "take", "gpu", n.GPUs()[0]))
			n.claimSpec("c-1", "gpu", n.GPUs()[0])
		}, late: map[string][]string{"resource_contested_devices": {`{reason="two_mechanisms",resource="nvidia.com/gpu"} 1`}}},
	}
}

func entry(uid, container, id string) given {
	return given{PodUID: uid, ContainerName: container, ResourceName: gpu, DeviceIDs: map[string][]string{"0": {id}}}
}

func (n *node) driver() string {
	return filepath.Join(n.e.options.Kubelet, "plugins", draname.Driver)
}

// anew has the exporter see a directory as a pod does, which has it mounted, and makes another one in its place.
func (n *node) anew(dir string) {
	n.t.Helper()
	f, err := os.Open(dir)
	must(n.t, err)
	n.t.Cleanup(func() { must(n.t, f.Close()) })
	mounted := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	config := gather.Config{Roots: n.roots, Kubelet: n.e.options.Kubelet}
	for _, at := range []*string{&config.Roots.CDI, &config.Roots.DevicePlugins} {
		if *at == dir {
			*at = mounted
		}
	}
	if dir == n.driver() {
		config.Kubelet = filepath.Join(n.dir, "mounts")
		must(n.t, os.MkdirAll(filepath.Join(config.Kubelet, "plugins"), 0o755), os.Symlink(mounted, filepath.Join(config.Kubelet, "plugins", draname.Driver)))
	}
	n.e.files = gather.New(config)
	n.pass(0)
	must(n.t, os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
}

// full is a plugin that does not take who connects: one is before everybody.
func (n *node) full(name string) {
	n.t.Helper()
	path := filepath.Join(n.roots.DevicePlugins, name)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(n.t, err, unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Listen(fd, 0))
	conn, err := net.Dial("unix", path)
	must(n.t, err)
	n.t.Cleanup(func() { must(n.t, conn.Close(), unix.Close(fd)) })
}

// dead is a plugin that was killed.
func (n *node) dead(name string) {
	n.t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(n.roots.DevicePlugins, name), Net: "unix"})
	must(n.t, err)
	l.SetUnlinkOnClose(false)
	must(n.t, l.Close())
}

// complete is a node of which every metric is told that does not need a fault.
func complete(t *testing.T) *node {
	t.Helper()
	n := simple(t)
	n.cdiSpec("kata.", gpu, n.GPUs()...)
	n.cdiSpec("kata.", "nvidia.com/nvswitch", n.NVSwitches()...)
	n.checkpoint(map[string][]string{gpu: n.GPUs(), "nvidia.com/nvswitch": n.NVSwitches()}, entry("u-1", "main", n.GPUs()[0]))
	n.record()
	n.pass(time.Second)
	return n
}

// TestLies breaks what metrics rest on, one thing at a time. What is not known is told no more, once the last
// answer is too old, and never as a number; that it is not known is told; and everything else goes on.
func TestLies(t *testing.T) {
	for _, l := range lies() {
		t.Run(l.name, func(t *testing.T) {
			n := complete(t)
			before := n.metrics()
			if l.happens != nil {
				l.happens(n)
			}
			n.pass(time.Second)
			l.check(n, false)
			for range 3 {
				n.pass(40 * time.Second)
			}
			l.check(n, true)
			n.agree("in the end")
			text := n.text()
			for _, gone := range l.gone {
				if !strings.Contains(gone, "{") {
					gone += "{"
				}
				if strings.Contains(text, "\n"+prefix+gone) {
					t.Errorf("%s is told, of what nobody knows", gone)
				}
			}
			after := n.metrics()
			for name := range before {
				if !after[name] && !slices.Contains(l.gone, name) {
					t.Errorf("%s is not told any more", name)
				}
			}
		})
	}
}

// check wants the sources to be as they are, and the series that have to be told.
func (l *lie) check(n *node, late bool) {
	n.t.Helper()
	stale, down := l.silent, slices.Sorted(slices.Values(slices.Concat(l.silent, l.partly)))
	if !late {
		stale = nil
	}
	if silent := n.sourcesWith("source_up", "0"); !slices.Equal(silent, down) {
		n.t.Errorf("%v do not answer, want %v", silent, down)
	}
	if old := n.sourcesWith("source_stale", "1"); !slices.Equal(old, slices.Sorted(slices.Values(stale))) {
		n.t.Errorf("%v are old, want %v", old, stale)
	}
	for name, series := range l.told {
		n.want(name, series...)
	}
	for name, series := range l.late {
		if !late {
			series = nil
		}
		n.want(name, series...)
	}
}

// sourcesWith are those of which a metric has a value.
func (n *node) sourcesWith(name, value string) (all []nodestate.Source) {
	n.t.Helper()
	for _, line := range n.series(name) {
		if labels, is, _ := strings.Cut(line, " "); is == value {
			all = append(all, nodestate.Source(strings.Trim(strings.TrimPrefix(labels, "{source="), `"}`)))
		}
	}
	return all
}

// metrics are the names of those that are told.
func (n *node) metrics() map[string]bool {
	n.t.Helper()
	all := map[string]bool{}
	for line := range strings.Lines(n.text()) {
		if name, ok := strings.CutPrefix(line, "# TYPE "+prefix); ok {
			name, _, _ = strings.Cut(name, " ")
			all[name] = true
		}
	}
	return all
}

// TestLocksOfDriver: where the DRA driver has the devices, kubelet has no plugin of them in its record. That nobody
// knows any more who has the locks does not make it a plugin that is missing.
func TestLocksOfDriver(t *testing.T) {
	n := complete(t)
	n.checkpoint(map[string][]string{})
	for _, resource := range []string{gpu, "nvidia.com/nvswitch"} {
		lock, err := nodelock.TakeShared(n.roots.CDI, resource, "a driver")
		must(t, err)
		t.Cleanup(func() { must(t, lock.Release()) })
	}
	n.pass(time.Second)
	n.want("kubelet_registered")
	n.anew(n.roots.CDI)
	for range 3 {
		n.pass(40 * time.Second)
		n.want("kubelet_registered")
	}
	if old := n.sourcesWith("source_stale", "1"); !slices.Contains(old, nodestate.Locks) {
		t.Errorf("%v are old", old)
	}
}
