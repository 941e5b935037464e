package check

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/deviceconfig"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// modeLabel is the label by which a node is given to the driver.
const modeLabel = "node-restriction.kubernetes.io/passthrough-mode"

// allGiven says whether each node of the cluster is the driver's by its label.
func (w *World) allGiven() bool {
	return len(w.nodes) > 0 && w.complete("Node") &&
		!slices.ContainsFunc(w.nodes, func(n *Node) bool { return n.Labels.Get(modeLabel).Text() != "dra" })
}

// stillAllocatable is about nodes that are the driver's by their label or by what it has published,
// and from which the scheduler still gives out a device plugin's resource of the same hardware.
func stillAllocatable(w *World) []Finding {
	var all []Finding
	for _, n := range w.nodes {
		for _, of := range []struct{ resource, kind string }{{"nvidia.com/gpu", "gpu"}, {"nvidia.com/nvswitch", "nvswitch"}} {
			count := n.Allocatable[of.resource]
			label, offers := n.Labels.Get(modeLabel), w.offersType(n.Name, of.kind)
			given := label.Text() == "dra"
			if count == 0 || !given && offers == nil {
				continue
			}
			f := foundKey(n.ref(), n.key(of.resource), "node %s has %d of %q allocatable, and is the DRA driver's: never both",
				n.Name, count, of.resource).about(of.resource)
			if given {
				f = f.with(label.KeyPlace(), "the label gives the node to the driver")
			} else {
				f = f.because("the node has no label %s=dra: if the driver has just left it, kubelet removes the slices half a "+
					"minute later", modeLabel)
			}
			if offers != nil {
				f = f.with(offers.Get("spec").Place(), "%s offers devices of type %s of the node", w.ref(offers), of.kind)
			} else {
				f = f.as(finding.Warning).because("no ResourceSlice of the input has a device of type %s of the node: the driver "+
					"holds them back, or is told not to offer them", of.kind)
			}
			all = append(all, f)
		}
	}
	return all
}

// offersType is a slice in which the driver offers a device of a type of a node, nil for none.
func (w *World) offersType(node, kind string) *manifest.Object {
	for _, p := range w.published {
		if p.Driver == draname.Driver && p.Node == node && p.own("type").Text() == kind {
			return p.Slice
		}
	}
	return nil
}

// parameters are what a claim, template or class tells the driver of its devices.
type parameters struct {
	of         Ref
	by, values manifest.Value // the driver's name, and what it is told
}

func (w *World) parameters() []parameters {
	var all []parameters
	add := func(o *manifest.Object, list manifest.Value) {
		for c := range list.Each() {
			if by := c.Get("opaque", "driver"); by.Text() == draname.Driver {
				all = append(all, parameters{w.ref(o), by, c.Get("opaque", "parameters")})
			}
		}
	}
	w.claims(func(o *manifest.Object) {
		add(o, o.Get("spec", "devices", "config"))
		add(o, o.Get("spec", "spec", "devices", "config"))
	})
	for _, o := range w.kinds["DeviceClass"] {
		add(o, o.Get("spec", "config"))
	}
	return all
}

// parametersRefused reads parameters as the driver does when it prepares a claim.
func parametersRefused(w *World) []Finding {
	var all []Finding
	for _, p := range w.parameters() {
		text, err := json.Marshal(Plain(p.values))
		if err == nil {
			_, err = deviceconfig.Decode(text)
		}
		if err == nil {
			continue
		}
		why := strings.Join(strings.Fields(err.Error()), " ")
		at := p.values
		if !at.Exists() {
			at = p.by
		}
		for field := range p.values.Entries() {
			if strings.Contains(why, strconv.Quote(field.Key())) {
				at = field
			}
		}
		all = append(all, foundKey(p.of, at, "the driver %s prepares no claim with the parameters of %s: %s", draname.Driver, p.of, why))
	}
	return all
}
