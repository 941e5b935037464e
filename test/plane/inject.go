//go:build !kubernetes134

package plane

import (
	"errors"
	"fmt"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// Inject resolves CDI names as containerd does, with the same library, and returns the paths
// of the device nodes that the container would have.
func Inject(dir string, names []string) (nodes []string, err error) {
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dir), cdi.WithAutoRefresh(false))
	if err != nil {
		return nil, fmt.Errorf("read CDI specs in %s: %w", dir, err)
	}
	for path, errs := range cache.GetErrors() {
		return nil, fmt.Errorf("read CDI spec %s: %w", path, errors.Join(errs...))
	}
	spec := &oci.Spec{Linux: &oci.Linux{}}
	if _, err := cache.InjectDevices(spec, names...); err != nil {
		return nil, fmt.Errorf("inject %v: %w", names, err)
	}
	for _, d := range spec.Linux.Devices {
		nodes = append(nodes, d.Path)
	}
	return nodes, nil
}
