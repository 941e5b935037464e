//go:build !kubernetes134

package plane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"
	"sigs.k8s.io/yaml"
	cdi "tags.cncf.io/container-device-interface/specs-go"
)

// KataResolves finds the device nodes on the host that Kata would plug for a container, by
// the rules of its readers of PodResources: those of 4.1 for device plugins, and those of
// the pending ones for claims. A plugin's device is named resource=ID; a claim's names are
// taken as they are, each once. Only nodes of a device itself count, by their path on the
// host, and what is beside the devices of a spec is not looked at. A name that no spec has,
// or two, or one without nodes, ends the pod; so does a node that both sources name.
func KataResolves(dirs []string, container *api.ContainerResources) ([]string, error) {
	specs, err := readSpecs(dirs)
	if err != nil {
		return nil, err
	}
	var plugin, claimed []string
	for _, d := range container.GetDevices() {
		for _, id := range d.GetDeviceIds() {
			plugin = append(plugin, d.GetResourceName()+"="+id)
		}
	}
	for _, r := range container.GetDynamicResources() {
		for _, c := range r.GetClaimResources() {
			for _, d := range c.GetCdiDevices() {
				if !slices.Contains(claimed, d.GetName()) {
					claimed = append(claimed, d.GetName())
				}
			}
		}
	}
	pluginNodes, err1 := resolve(specs, plugin)
	nodes, err2 := resolve(specs, claimed)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	for _, n := range pluginNodes {
		if slices.Contains(nodes, n) {
			return nil, fmt.Errorf("%s comes from a device plugin and from a claim", n)
		}
	}
	return append(pluginNodes, nodes...), nil
}

func readSpecs(dirs []string) ([]cdi.Spec, error) {
	var specs []cdi.Spec
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, fmt.Errorf("read CDI specs: %w", err)
		}
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); ext != ".json" && ext != ".yaml" {
				continue // a file that is being written has another name
			}
			path := filepath.Join(dir, e.Name())
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("read a CDI spec: %w", err)
			}
			var s cdi.Spec
			if err := yaml.Unmarshal(data, &s); err != nil {
				return nil, fmt.Errorf("read CDI spec %s: %w", path, err)
			}
			specs = append(specs, s)
		}
	}
	return specs, nil
}

// resolve looks each name up in all specs.
func resolve(specs []cdi.Spec, names []string) ([]string, error) {
	var nodes []string
	for _, name := range names {
		var found []cdi.Device
		for _, s := range specs {
			for _, d := range s.Devices {
				if s.Kind+"="+d.Name == name {
					found = append(found, d)
				}
			}
		}
		if len(found) != 1 {
			return nil, fmt.Errorf("resolve %s: %d CDI devices have this name", name, len(found))
		}
		if len(found[0].ContainerEdits.DeviceNodes) == 0 {
			return nil, fmt.Errorf("resolve %s: its CDI device has no device nodes of its own", name)
		}
		for _, n := range found[0].ContainerEdits.DeviceNodes {
			path := n.HostPath
			if path == "" {
				path = n.Path
			}
			if slices.Contains(nodes, path) {
				return nil, fmt.Errorf("resolve %s: its node %s is another device's too", name, path)
			}
			nodes = append(nodes, path)
		}
	}
	return nodes, nil
}
