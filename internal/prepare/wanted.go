package prepare

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/deviceconfig"
	"kata-device-plugin/internal/dra"
)

// want is a result of an allocation that is this driver's.
type want struct {
	result *resourceapi.DeviceRequestAllocationResult
	config deviceconfig.Config
}

func (w want) admin() bool { return w.result.AdminAccess != nil && *w.result.AdminAccess }

// wanted are the results of a claim that are this driver's. Those of other drivers are theirs.
func (e *Engine) wanted(c *resourceapi.ResourceClaim) ([]want, error) {
	if c.Status.Allocation == nil {
		return nil, fmt.Errorf("claim is not allocated")
	}
	devices := &c.Status.Allocation.Devices
	var all []want
	for i := range devices.Results {
		r := &devices.Results[i]
		if r.Driver != dra.Driver {
			continue
		}
		if r.Pool != e.Pool {
			return nil, fmt.Errorf("device %s is of pool %s, and this node's is %s", r.Device, r.Pool, e.Pool)
		}
		config, err := configOf(devices.Config, r.Request)
		if err != nil {
			return nil, err
		}
		all = append(all, want{r, config})
	}
	return all, nil
}

// configOf is what applies to a request: the class's parameters, and over them the claim's, each
// in their order.
func configOf(all []resourceapi.DeviceAllocationConfiguration, request string) (deviceconfig.Config, error) {
	var result deviceconfig.Config
	for _, source := range []resourceapi.AllocationConfigSource{resourceapi.AllocationConfigSourceClass, resourceapi.AllocationConfigSourceClaim} {
		for i := range all {
			c := &all[i]
			if c.Source != source || c.Opaque == nil || c.Opaque.Driver != dra.Driver || !concerns(c.Requests, request) {
				continue
			}
			config, err := deviceconfig.Decode(c.Opaque.Parameters.Raw)
			if err != nil {
				return result, fmt.Errorf("configuration of request %s from %s: %w", request, source, err)
			}
			result = result.Over(config)
		}
	}
	return result, nil
}

// concerns says whether a list of requests has one. A request with alternatives is named alone or
// with the alternative that was chosen, as in gpu/h100.
func concerns(requests []string, request string) bool {
	main, _, _ := strings.Cut(request, "/")
	return len(requests) == 0 || slices.Contains(requests, request) || slices.Contains(requests, main)
}

func sameDevices(a, b []claim.Device) bool {
	return slices.EqualFunc(a, b, func(x, y claim.Device) bool {
		return x.Pool == y.Pool && x.Name == y.Name && x.Admin == y.Admin && x.ShareID == y.ShareID && slices.Equal(x.Requests, y.Requests)
	})
}

func sameNodes(a, b []claim.Device) bool {
	return slices.EqualFunc(a, b, func(x, y claim.Device) bool { return slices.Equal(x.Nodes, y.Nodes) })
}

// names is a list of devices in one line.
func names(devices []claim.Device) string {
	all := make([]string, len(devices))
	for i, d := range devices {
		all[i] = d.Name
	}
	return strings.Join(all, " ")
}
