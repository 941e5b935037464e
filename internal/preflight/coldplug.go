package preflight

import (
	"fmt"
	"path"
	"strings"

	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/nodeconfig"
)

// The ports to which Kata plugs devices. The shims take no other word for cold plug.
const (
	noPort     = "no-port"
	rootPort   = "root-port"
	switchPort = "switch-port"
)

func coldPlug(s *survey, _ Way, v *verdict) {
	s.eachConfig(v, finding.NoColdPlug(), plugging)
}

// plugging judges the ports: which words the shims take is in docs/kata.md.
func plugging(n *captured, k *nodeconfig.Kata) opinion {
	switch {
	case k.ColdPlug == noPort && k.HotPlug != noPort:
		return opinion{wrong: fmt.Sprintf("cold_plug_vfio is no-port, and by hot_plug_vfio, which is %s, devices come after "+
			"the VM has started", k.HotPlug)}
	case k.ColdPlug == noPort:
		return opinion{wrong: "cold_plug_vfio is no-port"}
	case k.HotPlug != noPort:
		return opinion{wrong: fmt.Sprintf("cold_plug_vfio is %s and hot_plug_vfio is %s, and Kata refuses both together",
			k.ColdPlug, k.HotPlug)}
	case k.ColdPlug == rootPort:
		return opinion{fine: "cold_plug_vfio is root-port"}
	case k.ColdPlug == switchPort && strings.Contains(k.File, "/runtime-rs/"):
		return opinion{wrong: "cold_plug_vfio is switch-port, which the shim in Rust does not take"}
	case k.ColdPlug == switchPort:
		return opinion{open: fmt.Sprintf("which shim reads %s of node %s: cold_plug_vfio is switch-port, which that in Go "+
			"takes, and that in Rust does not", k.File, n.name)}
	}
	return opinion{wrong: fmt.Sprintf("cold_plug_vfio is %q, and Kata takes root-port", k.ColdPlug)}
}

// socket is only asked of configurations that plug devices: otherwise the shim asks nobody, whatever is
// set.
func socket(s *survey, _ Way, v *verdict) {
	s.eachConfig(v, finding.NobodyAsked(), func(n *captured, k *nodeconfig.Kata) opinion {
		dir := n.c.Meta.KubeletDir
		kubelets := path.Join(dir, "pod-resources", "kubelet.sock")
		switch {
		case plugging(n, k).wrong != "":
			return opinion{}
		case k.Socket == "":
			return opinion{wrong: "pod_resource_api_sock is empty"}
		case dir == "":
			return opinion{open: fmt.Sprintf("the directory of kubelet on node %s: whether %s is its socket", n.name, k.Socket)}
		case path.Clean(k.Socket) != kubelets:
			return opinion{wrong: fmt.Sprintf("pod_resource_api_sock is %s, and kubelet's is %s", k.Socket, kubelets)}
		}
		return opinion{fine: "pod_resource_api_sock is " + k.Socket}
	})
}

// rootPorts compares with all devices of a node.
func rootPorts(s *survey, w Way, v *verdict) {
	s.eachConfig(v, finding.FewPorts(), func(n *captured, k *nodeconfig.Kata) opinion {
		most, what := s.mostDevices(n, w)
		ports := fmt.Sprintf("pcie_root_port is %d, and %s", k.RootPorts, what)
		switch {
		case plugging(n, k).wrong != "":
			return opinion{}
		case most == 0 && !n.told:
			return opinion{open: fmt.Sprintf("a new capture of node %s, with kubelet's answer which devices it offers: the "+
				"driver has published none there", n.name)}
		case most == 0:
			return opinion{open: fmt.Sprintf("how many devices node %s has: neither kubelet nor the driver offers one there", n.name)}
		case k.RootPorts < int64(most):
			return opinion{wrong: ports}
		}
		return opinion{fine: ports}
	})
}

// mostDevices is how many devices a pod may have on a node, 0 where that is not known. Where the way has
// none there, it will have those of the other way: the hardware is the same.
func (s *survey) mostDevices(n *captured, w Way) (most int, what string) {
	offered, published := map[string]bool{}, map[string]bool{}
	for _, p := range n.plugged {
		if n.told { // else it is what pods have, and perhaps not all
			offered[p.address] = true
		}
	}
	for _, d := range s.View.Published() {
		if d.Node == n.name && d.Driver == draname.Driver {
			published[d.DeviceName.Device] = true
		}
	}
	if len(offered) > 0 && (w == DevicePlugin || len(published) == 0) {
		return len(offered), "kubelet offers " + counted(len(offered), "device")
	}
	return len(published), "the driver has published " + counted(len(published), "device")
}
