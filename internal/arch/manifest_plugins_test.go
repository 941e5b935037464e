package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/devinfo"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nicplugin"
)

// plugin is what is a program's own in its deployment. All else is the same for every one of
// them, and so are the rules.
type plugin struct {
	name string
	// hostNetwork says what for the program needs the host's network. "" is for one that does
	// not, and then has no network at all.
	hostNetwork string
	args        []string
	hostPaths   []hostPath
	configMaps  []configPlace
	// request and limit are of memory.
	request, limit string
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
	}}
}

// TestDifferencesHaveReasons: whatever a program has that others have not.
func TestDifferencesHaveReasons(t *testing.T) {
	for _, p := range deployed() {
		for _, h := range p.hostPaths {
			if h.why == "" {
				t.Errorf("%s mounts %s, and nobody says why", p.name, h.path)
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
		want := []string{roots.DevicePlugins, roots.CDI, roots.Run}
		if p.name == "nic-device-plugin" {
			want = append(want, devinfo.Directory, roots.PodResources)
			for _, file := range nicplugin.DefaultConfig() {
				want = append(want, path.Dir(file))
			}
			for _, arg := range p.args {
				if dir, ok := strings.CutPrefix(arg, "--dev-dir="); ok {
					want = append(want, dir)
				}
			}
		} else {
			want = append(want, roots.VFIO())
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
