package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/nodeconfig"
)

// runtime notes what containerd or CRI-O is told about CDI, and which handlers start a Kata VM.
func (n *node) runtime(context.Context) {
	keep := keys("enable_cdi", "cdi_spec_dirs", "imports", "runtime_type", "ConfigPath", "runtime_path", "runtime_config_path")
	for _, at := range append(nodeconfig.RuntimeFiles(), nodeconfig.CRIOFile) {
		n.file(at, maxFile, keep)
	}
	for _, more := range nodeconfig.RuntimeDirs() {
		n.tomlFiles(more, keep, 0)
	}
	for _, name := range n.list(nodeconfig.CRIODir) {
		n.file(path.Join(nodeconfig.CRIODir, name), maxFile, keep)
	}
}

// kubeletConfig notes what kubelet is told about NUMA nodes, and its feature gates.
func (n *node) kubeletConfig(context.Context) {
	for _, at := range nodeconfig.KubeletFiles(n.Kubelet) {
		n.file(at, maxFile, func(text []byte) ([]byte, error) {
			kept, err := nodeconfig.Keep(text)
			if err != nil {
				return nil, errors.New("it is neither YAML nor JSON") // the parser's error may have a line of it
			}
			text, err = json.MarshalIndent(kept, "", "  ")
			return append(text, '\n'), err
		})
	}
}

// kata notes what decides how Kata's shims take devices. The guest's kernel parameters, which
// may have a secret in them, are not among that.
func (n *node) kata(context.Context) {
	keep := keys("cold_plug_vfio", "hot_plug_vfio", "hotplug_vfio_on_root_bus", "pcie_root_port", "pcie_switch_port",
		"pod_resource_api_sock", "vfio_mode", "default_bridges", "machine_type")
	const depth = 2 // runtimes/NAME/configuration.toml and config.d
	for _, dir := range nodeconfig.KataDirs() {
		n.tomlFiles(dir, keep, depth)
	}
	n.file(nodeconfig.KataVersionFile, maxFile, nil)
}

// tomlFiles notes the TOML files in a directory, and in those below it.
func (n *node) tomlFiles(dir string, keep func([]byte) ([]byte, error), depth int) {
	for _, name := range n.list(dir) {
		at := path.Join(dir, name)
		if path.Ext(name) == ".toml" {
			n.file(at, maxFile, keep)
		} else if e := n.examine(at); e != nil && e.Kind == capture.Dir && depth > 0 {
			n.tomlFiles(at, keep, depth-1)
		}
	}
}

// keys returns a function that keeps the lines of some keys of a TOML file, with the headers of
// their tables. What else the file says is nobody's business.
func keys(names ...string) func([]byte) ([]byte, error) {
	return func(text []byte) ([]byte, error) {
		var kept bytes.Buffer
		kept.WriteString("# Of this file there are here: " + strings.Join(names, ", ") + "\n")
		header, open := "", false
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			key, value, _ := strings.Cut(line, "=")
			switch {
			case open && line != "" && strings.IndexByte(`"']#`, line[0]) >= 0: // the rest of a list
			case strings.HasPrefix(line, "["):
				header = line
				continue
			case !slices.Contains(names, strings.Trim(strings.TrimSpace(key), `"`)):
				continue
			case header != "":
				kept.WriteString(header + "\n")
				header = ""
			}
			open = (open || strings.HasPrefix(strings.TrimSpace(value), "[")) && !strings.Contains(line, "]")
			kept.WriteString(line + "\n")
		}
		return kept.Bytes(), nil
	}
}
