// Package deviceconfig is the API by which a claim or a device class says how its devices are
// to be handed out: the opaque parameters of the driver, in API version v1alpha1.
package deviceconfig

import (
	"errors"
	"fmt"

	"sigs.k8s.io/json"
)

// What the parameters call themselves.
const (
	APIVersion = "vfio.katacontainers.io/v1alpha1"
	Kind       = "DeviceConfig"
)

// VFIONodes says which node of a device a container gets.
type VFIONodes string

// The nodes that there are. Both at once are not on offer: a VM monitor would attach the device
// by the one and again by the other.
const (
	// Cdev is the character device of IOMMUFD, /dev/vfio/devices/vfioN.
	Cdev VFIONodes = "cdev"
	// Group is the legacy node of the IOMMU group, /dev/vfio/N.
	Group VFIONodes = "group"
)

// Config is what can be configured. The zero value of a field is its default.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// VFIONodes is which node a container gets, "" for Cdev.
	VFIONodes VFIONodes `json:"vfioNodes,omitempty"`
}

// Decode reads parameters strictly: a field that is not known, misspelled or there twice is an
// error, since whoever wrote it expects something to come of it.
func Decode(raw []byte) (Config, error) {
	var c Config
	strict, err := json.UnmarshalStrict(raw, &c)
	if err = errors.Join(append(strict, err)...); err != nil {
		return Config{}, fmt.Errorf("read %s: %w", Kind, err)
	}
	switch {
	case c.APIVersion != APIVersion || c.Kind != Kind:
		return Config{}, fmt.Errorf("read %s: apiVersion %q and kind %q, want %s and %s", Kind, c.APIVersion, c.Kind, APIVersion, Kind)
	case c.VFIONodes != "" && c.VFIONodes != Cdev && c.VFIONodes != Group:
		return Config{}, fmt.Errorf("read %s: vfioNodes %q: want %s or %s", Kind, c.VFIONodes, Cdev, Group)
	}
	return c, nil
}

// Over is a configuration with the fields that a later one sets in place of its own.
func (c Config) Over(later Config) Config {
	if later.VFIONodes != "" {
		c.VFIONodes = later.VFIONodes
	}
	return c
}
