package nodeview

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"kata-device-plugin/internal/cdispec"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nodestate"
)

// readSpecs reads the CDI specs of a node. A directory that does not exist has none.
func readSpecs(files fs.FS, dev host.DevFS) ([]nodestate.Spec, error) {
	var all []nodestate.Spec
	for rank, dir := range cdispec.Dirs() {
		dir = strings.TrimPrefix(dir, "/")
		entries, err := fs.ReadDir(files, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list CDI specs: %w", err)
		}
		for _, e := range entries {
			if e.IsDir() || !cdispec.Named(e.Name()) {
				continue
			}
			spec, err := readSpec(files, dev, path.Join(dir, e.Name()))
			if errors.Is(err, fs.ErrNotExist) {
				continue // removed since the listing, or a link to nothing
			}
			if err != nil {
				return nil, err
			}
			spec.Rank = rank
			all = append(all, spec)
		}
	}
	return all, nil
}

// maxSpec is more than the specs of whole nodes have.
const maxSpec = 4 << 20

// readSpec reads one. What runtimes refuse has no names; what cannot be read may have any, so that
// nothing is known.
func readSpec(files fs.FS, dev host.DevFS, name string) (nodestate.Spec, error) {
	spec := nodestate.Spec{Path: "/" + name, State: nodestate.SpecInvalid}
	info, err := fs.Stat(files, name)
	if err != nil {
		return spec, fmt.Errorf("read CDI spec: %w", err)
	}
	switch {
	case !info.Mode().IsRegular():
		return spec, nil // to open a pipe would wait for a writer
	case info.Size() > maxSpec:
		return spec, fmt.Errorf("read CDI spec /%s: it has %d bytes, and %d are the most that is read", name, info.Size(), maxSpec)
	}
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return spec, fmt.Errorf("read CDI spec: %w", err)
	}
	// A capture in which nobody asked for modes has none.
	spec.Private = info.Mode().Perm() != 0 && cdispec.Private(info.Mode())
	read := cdispec.Parse(name, data)
	if read.Err != nil {
		return spec, nil //nolint:nilerr // that is its state
	}
	spec.Kind, spec.Devices, spec.State = read.Class, map[string][]string{}, nodestate.SpecValid
	spec.Stale = map[string]bool{}
	for _, d := range read.Devices {
		nodes := []string{}
		for n := range d.Get("containerEdits", "deviceNodes").Each() {
			nodes = append(nodes, cdispec.OnHost(n))
			if dev != nil && cdispec.Stale(n, dev) != "" {
				spec.Stale[d.Get("name").Text()] = true
			}
		}
		spec.Devices[d.Get("name").Text()] = nodes
	}
	return spec, nil
}
