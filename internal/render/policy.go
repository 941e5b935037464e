package render

import (
	"slices"

	"kata-device-plugin/internal/draname"
)

// Policy says which extended resource is which class of devices, how pods are to get them, and for
// what cluster manifests are written.
type Policy struct {
	// Kubernetes is the version of the cluster.
	Kubernetes Version
	// FeatureGates are on in the cluster although they are off by default in that version.
	FeatureGates []string
	// Flavours are the kinds of devices, in the order in which requests are written.
	Flavours []Flavour
	// Alignments are what devices of several flavours must have in common.
	Alignments []Alignment
	// Queue is for Kueue, nil where the policy says nothing of it.
	Queue *Queue
}

// Flavour is one kind of device under its two names.
type Flavour struct {
	// Resource is the name in limits, Class that of the DeviceClass.
	Resource, Class string
	// Request is what requests of a claim are called: gpu, or gpu-0, gpu-1.
	Request string
	// Selectors narrow the class in each request: expressions in CEL.
	Selectors []string
	// ClassSelectors are those of the class itself, for when it has to be written.
	ClassSelectors []string
	// Via is how pods get such devices.
	Via Via
}

// Alignment is a constraint on the devices of one container.
type Alignment struct {
	// Resources are the flavours that it is about, by the name in limits: two or more.
	Resources []string
	// Attribute is what the devices must have in common, with its domain.
	Attribute string
	// Together means all devices of the container. Otherwise they are put in groups that are as small
	// as the numbers allow: two GPUs and two NICs are two pairs.
	Together bool
}

// Default is the policy without a file: the classes that kata-dra-driver is installed with, under the
// names of the device plugins, for the newest known Kubernetes. It has no alignment, since whether
// a GPU and a NIC share a PCIe root is a matter of the machines.
func Default() *Policy {
	p := &Policy{Kubernetes: newestVersion}
	for _, c := range []struct{ resource, kind string }{
		{"nvidia.com/gpu", "gpu"},
		{"nvidia.com/nvswitch", "nvswitch"},
		{"vfio.katacontainers.io/nic", "nic"},
		{"vfio.katacontainers.io/vf", "vf"},
	} {
		class := c.kind + "." + draname.Driver
		p.Flavours = append(p.Flavours, Flavour{
			Resource: c.resource, Class: class, Request: c.kind, ClassSelectors: knownClass(class), Via: DevicePlugin,
		})
	}
	return p
}

// knownClass are the selectors of a class that kata-dra-driver is installed with.
func knownClass(name string) []string {
	for _, kind := range []string{"gpu", "nvswitch", "nic", "vf"} {
		if name == kind+"."+draname.Driver {
			return []string{`device.driver == "` + draname.Driver + `" && device.attributes["` + draname.Driver + `"].type == "` + kind + `"`}
		}
	}
	return nil
}

// With is the policy with one way for all flavours, which is what --via asks for.
func (p *Policy) With(via Via) *Policy {
	other := *p
	other.Flavours = slices.Clone(p.Flavours)
	for i := range other.Flavours {
		other.Flavours[i].Via = via
	}
	return &other
}

// flavour finds a flavour by the name in limits.
func (p *Policy) flavour(resource string) *Flavour {
	for i := range p.Flavours {
		if p.Flavours[i].Resource == resource {
			return &p.Flavours[i]
		}
	}
	return nil
}

// uses says whether any flavour goes one way.
func (p *Policy) uses(via Via) bool {
	return slices.ContainsFunc(p.Flavours, func(f Flavour) bool { return f.Via == via })
}
