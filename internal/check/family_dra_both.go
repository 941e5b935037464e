package check

import (
	"fmt"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// pluginHas is a PCI function that a device plugin has on a node, as far as the input tells.
type pluginHas struct {
	node, address, resource string
	how                     string
	at                      manifest.Place
	// parts: it is a PF, and the plugin has some of its VFs.
	parts bool
}

// plugged lists the functions that device plugins have: by kubelet's word, by a configuration
// that names them, and by the status that pods have of their networks.
func (w *World) plugged() []pluginHas {
	var all []pluginHas
	for _, n := range w.captured {
		all = append(all, n.plugged()...)
	}
	for _, c := range w.configs {
		for _, p := range c.Pools {
			all = append(all, w.configured(p)...)
		}
	}
	for _, p := range w.workloads {
		if p.holds() && p.node() != "" && len(p.Wants()) > 0 && p.Spec.Get("resourceClaims").Len() == 0 {
			all = append(all, inNetworks(p)...)
		}
	}
	return all
}

func (n *captured) plugged() []pluginHas {
	var all []pluginHas
	at := manifest.Place{File: n.file}
	if n.allocatable != nil {
		for _, d := range n.allocatable.Devices {
			if a := pciAddress(d.ID); a != "" {
				all = append(all, pluginHas{node: n.name, address: a, resource: d.Resource, how: "kubelet offers it", at: at})
			}
		}
	}
	if n.pods != nil {
		for _, p := range n.pods.Pods {
			for _, c := range p.Containers {
				for _, d := range c.Devices {
					if a := pciAddress(d.ID); a != "" {
						how := fmt.Sprintf("pod %s/%s has it", p.Namespace, p.Name)
						all = append(all, pluginHas{node: n.name, address: a, resource: d.Resource, how: how, at: at})
					}
				}
			}
		}
	}
	return all
}

// configured are the functions that a pool names by their addresses, on the nodes where its plugin
// runs and has devices of it.
func (w *World) configured(p *Pool) []pluginHas {
	var all []pluginHas
	for _, name := range p.names() {
		for _, n := range w.nodes {
			runs := name.agent != nil && n.refusesDaemon(name.agent.Spec) == ""
			if !runs || n.Allocatable[name.String()] == 0 {
				continue
			}
			for _, s := range p.selectors() {
				for _, key := range []string{"pciAddresses", "rootDevices"} {
					for item := range s.GetFold(key).Each() {
						address, _, _ := strings.Cut(item.Text(), "#")
						if address = pciAddress(address); address != "" {
							all = append(all, pluginHas{n.Name, address, name.String(), "its configuration names it", item.Place(),
								key == "rootDevices"})
						}
					}
				}
			}
		}
	}
	return all
}

// inNetworks are the functions that Multus notes of a pod's networks.
func inNetworks(p *Workload) []pluginHas {
	status := p.Meta.Get("annotations", "k8s.v1.cni.cncf.io/network-status")
	if !strings.Contains(status.Text(), "pci-address") {
		return nil
	}
	v, err := status.Embedded()
	if err != nil {
		return nil
	}
	var all []pluginHas
	for network := range v.Each() {
		if a := pciAddress(network.Get("device-info", "pci", "pci-address").Text()); a != "" {
			all = append(all, pluginHas{node: p.node(), address: a, resource: p.Wants()[0].Name,
				how: p.ref().String() + " has it as a network", at: status.KeyPlace()})
		}
	}
	return all
}

// offeredTwice finds functions that a DRA driver has published on the node on which a plugin has them.
func offeredTwice(w *World) []Finding {
	has := map[[2]string][]pluginHas{}
	for _, p := range w.plugged() {
		key := [2]string{p.node, p.address}
		has[key] = append(has[key], p)
	}
	var all []Finding
	for _, d := range w.published {
		if d.Node == "" {
			continue
		}
		if p := has[[2]string{d.Node, d.Address}]; d.Address != "" && len(p) > 0 {
			all = append(all, w.inBoth(d, p[0]))
		}
		for _, name := range []string{"parentAddress", "pfPciAddress"} {
			pf := pciAddress(d.own(name).Text())
			if p := has[[2]string{d.Node, pf}]; pf != "" && len(p) > 0 {
				all = append(all, w.partsInBoth(d, pf, p[0]))
			}
		}
	}
	return all
}

func (w *World) inBoth(d Published, p pluginHas) Finding {
	at := d.Device.Get("attributes", pciAddressKey, "string")
	if p.parts {
		f := found(w.ref(d.Slice), at, "device %s of driver %s is the PF %s of node %s, and a device plugin has VFs of it as %q",
			d.DeviceName.Device, d.Driver, d.Address, d.Node, p.resource)
		return f.as(finding.Warning).about(p.resource).with(p.at, "%s", p.how)
	}
	f := found(w.ref(d.Slice), at, "device %s of driver %s is %s of node %s, which a device plugin has as %q",
		d.DeviceName.Device, d.Driver, d.Address, d.Node, p.resource)
	return f.about(p.resource).with(p.at, "%s", p.how)
}

// partsInBoth: a PF that is handed out takes its VFs along; two plugins that each have some VFs of
// one PF may do so on purpose.
func (w *World) partsInBoth(d Published, pf string, p pluginHas) Finding {
	what := "which a device plugin has as %q"
	if p.parts {
		what = "of which a device plugin has VFs as %q: whether they are the same is not in the input"
	}
	f := found(w.ref(d.Slice), d.at.Get("name"), "device %s of driver %s on node %s is a VF of the PF %s, "+what,
		d.DeviceName.Device, d.Driver, d.Node, pf, p.resource)
	return f.as(finding.Warning).about(p.resource).with(p.at, "%s", p.how)
}
