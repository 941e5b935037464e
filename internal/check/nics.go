package check

import (
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nicconfig"
)

// nicRules are those of nic-device-plugin on a captured node, nil where the input does not show
// them: that the plugin runs there, what its file says, and who has its devices. A VF that is in a
// container cannot be seen, and would be taken for one that is broken.
func (w *World) nicRules(n *captured) declare.Rules {
	node := w.nodeOf[n.name]
	if node == nil || n.pods == nil || n.c.Links == nil {
		return nil
	}
	var config *nicconfig.Config
	for _, a := range w.agents {
		if a.plugin != nicPlugin || node.refusesDaemon(a.Spec) != "" {
			continue
		}
		files := w.filesOf(a)
		read, err := nicconfig.ParseFiles(files, nicconfig.Options{Prefix: a.Prefix})
		if config != nil || len(files) == 0 || err != nil || a.Prefix == unknownPrefix {
			return nil // two would wait for each other's locks; what is wrong with a file the family CFG says
		}
		config = read
	}
	if config == nil {
		return nil
	}
	return nic.New(config)
}

// filesOf are the configuration files of an agent that ConfigMaps of the input have, in its order.
func (w *World) filesOf(a *Agent) []nicconfig.File {
	var all []nicconfig.File
	names, _ := a.configFiles()
	for _, name := range names {
		for _, m := range a.configMaps() {
			for _, c := range w.configs {
				if c.Owner == (Ref{"ConfigMap", a.Namespace, m.configMap}) && m.path(c.At.Key()) == name {
					all = append(all, nicconfig.File{Name: name, Data: []byte(c.At.Text())})
				}
			}
		}
	}
	return all
}

// holders are the containers that have a device, by the device's ID; nil where nobody was asked.
func (n *captured) holders() map[string][]inventory.Holder {
	if n.pods == nil {
		return nil
	}
	all := map[string][]inventory.Holder{}
	for _, p := range n.pods.Pods {
		for _, c := range p.Containers {
			for _, d := range c.Devices {
				all[d.ID] = append(all[d.ID], inventory.Holder{Namespace: p.Namespace, Pod: p.Name, Container: c.Name, Resource: d.Resource})
			}
		}
	}
	return all
}
