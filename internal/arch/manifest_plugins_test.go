package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/devinfo"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicplugin"
)

// plugin is what is a program's own in its deployment: of a plugin, or of the DRA driver. All else is the same for every one of
// them, and so are the rules.
type plugin struct {
	name string
	// hostNetwork says what for the program needs the host's network. "" is for one that does
	// not, and then has no network at all.
	hostNetwork string
	// api says what for the program needs the API server. "" is for one that does not.
	api string
	// together says why two copies on one node during an update are better than none. "" is for
	// one of which the second would wait for the first.
	together string
	// mode is the value of the node label passthrough-mode that its nodes have. "" is for one that
	// runs on all nodes but those of the DRA driver.
	mode string
	// everyNode says why it runs on the nodes of both. "" is for one that does not.
	everyNode string
	args      []string
	env       []variable
	// ports are those that it is asked on.
	ports      []port
	hostPaths  []hostPath
	configMaps []configPlace
	// request and limit are of memory.
	request, limit string
}

// variable is what the program is told of itself, by the downward API.
type variable struct{ name, field, why string }

// port is a TCP port of the pod.
type port struct {
	name   string
	number int
	why    string
}

// hostPath is a directory of the host with the reason why it is mounted.
type hostPath struct {
	path, kind, at string
	readOnly       bool
	// recursive is for a directory that other file systems are mounted in.
	recursive bool
	why       string
}

func (h hostPath) String() string {
	recursive := ""
	if h.recursive {
		recursive = " IfPossible"
	}
	return fmt.Sprintf("%s (%s) at %s %s%s", h.path, h.kind, h.at, mode(h.readOnly), recursive)
}

// configPlace is a ConfigMap that a configuration may be in.
type configPlace struct{ name, at, why string }

// deployed has a row for each program with a directory below deploy.
func deployed() []plugin {
	const kubelet, cdi = "/var/lib/kubelet/device-plugins", "/var/run/cdi"
	common := []hostPath{
		{path: kubelet, kind: "Directory", at: kubelet, why: "sockets to and from kubelet, and its record of devices"},
		{path: cdi, kind: "DirectoryOrCreate", at: cdi, why: "CDI specs, and the locks that keep two agents apart"},
	}
	return []plugin{{
		name: "kata-device-plugin",
		hostPaths: append(slices.Clip(common),
			hostPath{path: "/dev/vfio", kind: "DirectoryOrCreate", at: "/dev/vfio", readOnly: true, why: "which nodes are there"}),
		request: "20Mi", limit: "64Mi",
	}, {
		name:        "nic-device-plugin",
		hostNetwork: "the host's interfaces and RDMA devices in /sys, its default routes, and what the kernel announces of both",
		args:        []string{"--dev-dir=/host/dev"},
		hostPaths: append(slices.Clip(common),
			hostPath{path: devinfo.Directory, kind: "DirectoryOrCreate", at: devinfo.Directory, why: "device-info files, which Multus reads"},
			hostPath{path: "/var/lib/kubelet/pod-resources", kind: "DirectoryOrCreate", at: "/var/lib/kubelet/pod-resources", readOnly: true,
				why: "kubelet says which container has which device"},
			hostPath{path: "/dev", kind: "Directory", at: "/host/dev", readOnly: true, recursive: true,
				why: "nodes such as /dev/uio0 and /dev/vhost-net have no directory of their own"}),
		configMaps: []configPlace{
			{"nic-device-plugin", "/etc/nic-device-plugin", "the plugin's own"},
			{"sriovdp-config", "/etc/pcidp", "that of the SR-IOV network device plugin, as its manifest names it"},
			{"rdma-devices", "/k8s-rdma-shared-dev-plugin", "that of the RDMA shared device plugin, as its manifest names it"},
		},
		request: "32Mi", limit: "128Mi", // files of people's make, and nodes with thousands of VFs
	}, driver(cdi), exporterRow(cdi)}
}

// driver is the row of the DRA driver.
func driver(cdi string) plugin {
	const registry, own, pods = "/var/lib/kubelet/plugins_registry", "/var/lib/kubelet/plugins/" + dra.Driver, "/var/lib/kubelet/pod-resources"
	return plugin{
		name:     "kata-dra-driver",
		api:      "the node's slices, and what is allocated to the claims that kubelet names",
		together: "kubelet removes the slices of a driver that is away, and pods with claims neither start nor end",
		mode:     modeDRA,
		env: []variable{
			{"NODE_NAME", "spec.nodeName", "whose devices they are"},
			{"POD_UID", "metadata.uid", "keeps the sockets of two copies apart"},
		},
		ports: []port{{"metrics", 9817, "Prometheus asks"}},
		hostPaths: []hostPath{
			{path: registry, kind: "Directory", at: registry, why: "kubelet finds the driver's socket there"},
			{path: own, kind: "DirectoryOrCreate", at: own, why: "the driver's socket, and the records of claims"},
			{path: cdi, kind: "DirectoryOrCreate", at: cdi, why: "CDI specs of claims, and the locks that keep it and the plugins apart"},
			{path: pods, kind: "DirectoryOrCreate", at: pods, readOnly: true, why: "kubelet says which container has which device"},
			{path: "/dev/vfio", kind: "DirectoryOrCreate", at: "/dev/vfio", readOnly: true, why: "which nodes are there"},
		},
		request: "64Mi", limit: "256Mi", // with the client for the API server, and nodes with hundreds of VFs
	}
}

// exporterRow is the row of the exporter.
func exporterRow(cdi string) plugin {
	const plugins, own, pods = "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/plugins/" + dra.Driver, "/var/lib/kubelet/pod-resources"
	return plugin{
		name: "device-exporter", everyNode: "it tells of devices whichever mechanism hands them out",
		ports: []port{{"metrics", 9818, "Prometheus and browsers ask"}},
		hostPaths: []hostPath{
			{path: plugins, kind: "Directory", at: plugins, readOnly: true, why: "kubelet's record of devices, and which plugins listen"},
			{path: pods, kind: "DirectoryOrCreate", at: pods, readOnly: true, why: "kubelet says which container has which device"},
			{path: own, kind: "DirectoryOrCreate", at: own, readOnly: true, why: "the records of claims"},
			{path: cdi, kind: "DirectoryOrCreate", at: cdi, readOnly: true, why: "what CDI names come to, and who has the locks"},
			{path: "/dev/vfio", kind: "DirectoryOrCreate", at: "/dev/vfio", readOnly: true, why: "which nodes are there"},
		},
		request: "32Mi", limit: "192Mi", // thousands of devices, and several scrapes at once
	}
}

// TestDifferencesHaveReasons: whatever a program has that others have not.
func TestDifferencesHaveReasons(t *testing.T) {
	for _, p := range deployed() {
		for _, h := range p.hostPaths {
			if h.why == "" {
				t.Errorf("%s mounts %s, and nobody says why", p.name, h.path)
			}
		}
		for _, e := range p.env {
			if e.why == "" {
				t.Errorf("%s is told %s, and nobody says why", p.name, e.name)
			}
		}
		for _, o := range p.ports {
			if o.why == "" {
				t.Errorf("%s has the port %s, and nobody says why", p.name, o.name)
			}
		}
		for _, c := range p.configMaps {
			if c.why == "" {
				t.Errorf("%s mounts the ConfigMap %s, and nobody says why", p.name, c.name)
			}
		}
	}
}

// TestManifestsFitThePrograms: what the programs touch by default is what the manifests mount.
func TestManifestsFitThePrograms(t *testing.T) {
	for _, p := range deployed() {
		roots := host.System(p.name)
		want := []string{roots.CDI, roots.Run}
		switch p.name {
		case "kata-device-plugin":
			want = append(want, roots.DevicePlugins, roots.VFIO())
		case "device-exporter":
			want = append(want, roots.DevicePlugins, roots.PodResources, roots.VFIO(), "/var/lib/kubelet/plugins/"+dra.Driver)
		case "kata-dra-driver":
			const kubelet = "/var/lib/kubelet/" // the default of --kubelet-dir
			want = append(want, roots.PodResources, roots.VFIO(), kubelet+"plugins_registry", kubelet+"plugins/"+dra.Driver)
		case "nic-device-plugin":
			want = append(want, roots.DevicePlugins, devinfo.Directory, roots.PodResources)
			for _, file := range nicplugin.DefaultConfig() {
				want = append(want, path.Dir(file))
			}
			for _, arg := range p.args {
				if dir, ok := strings.CutPrefix(arg, "--dev-dir="); ok {
					want = append(want, dir)
				}
			}
		}
		var got []string
		for _, m := range readDeployment(t, p).container().VolumeMounts {
			got = append(got, m.MountPath)
		}
		slices.Sort(got)
		slices.Sort(want)
		if err := same("mounts", got, want); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

// TestManifestFitsTheDriver: the variables that it reads and the port that it opens by default are
// those of its manifest.
func TestManifestFitsTheDriver(t *testing.T) {
	p := driver("")
	var env []string
	for _, e := range p.env {
		env = append(env, e.name)
	}
	if err := same("variables", literals(t, "internal/dradriver", calledWith(map[string]int{"getenv": 0})), env); err != nil {
		t.Error(err)
	}
	defaults := literals(t, "internal/dradriver", calledWith(map[string]int{"flags.StringVar": 2}))
	for _, want := range []string{fmt.Sprintf(":%d", p.ports[0].number), "/var/lib/kubelet"} {
		if !slices.Contains(defaults, want) {
			t.Errorf("no flag has the default %s: %v", want, defaults)
		}
	}
}
