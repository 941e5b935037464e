package check

import (
	"strings"

	"kata-device-plugin/internal/manifest"
)

// Network is a NetworkAttachmentDefinition, or an object that an operator makes one from.
type Network struct {
	Object    *manifest.Object
	Namespace string
	Name      string
	// Resource is the name that the network is tied to, "" for none; it begins with ?/ when
	// its prefix is set where the input does not show. At is where it stands.
	Resource string
	At       manifest.Value
	// Config is the CNI configuration, and ConfigErr why it cannot be read.
	Config    manifest.Value
	ConfigErr error
	// Generated: an operator will make the network. It cannot have spelling mistakes of its own.
	Generated bool
}

func (n *Network) ref() Ref { return Ref{networkKind, n.Namespace, n.Name} }

// plugins are the CNI plugins of the configuration: one, or those of a list.
func (n *Network) plugins() []manifest.Value {
	if list := n.Config.Get("plugins"); list.Kind() == manifest.List {
		var all []manifest.Value
		for p := range list.Each() {
			all = append(all, p)
		}
		return all
	}
	if n.Config.Kind() == manifest.Map {
		return []manifest.Value{n.Config}
	}
	return nil
}

// networkOf reads an object as a network, nil for every other.
func (w *World) networkOf(o *manifest.Object) *Network {
	spec := o.Get("spec")
	n := &Network{Object: o, Namespace: w.namespace(o), Name: o.Name, Generated: true}
	switch o.Kind {
	case networkKind:
		n.Generated = false
		for _, key := range w.nameKeys() {
			if v := o.Annotation(key); v.Text() != "" {
				n.Resource, n.At = strings.TrimSpace(v.Text()), v
				break
			}
		}
		if config := spec.Get("config"); strings.TrimSpace(config.Text()) != "" {
			n.Config, n.ConfigErr = config.Embedded()
		}
		return n
	case "SriovNetwork", "SriovIBNetwork", "OVSNetwork":
		n.At = spec.Get("resourceName")
		if n.At.Text() != "" {
			n.Resource = w.operator.prefix() + "/" + n.At.Text()
		}
	case "HostDeviceNetwork": // of the NVIDIA network operator, which has one prefix
		n.At = spec.Get("resourceName")
		if n.At.Text() != "" {
			n.Resource = "nvidia.com/" + strings.TrimPrefix(n.At.Text(), "nvidia.com/")
		}
	case "MacvlanNetwork", "IPoIBNetwork":
	default:
		return nil
	}
	if ns := spec.Get("networkNamespace").Text(); ns != "" {
		n.Namespace = ns
	}
	return n
}
