package check

import (
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// Allotted is a device that a claim has.
type Allotted struct {
	DeviceName
	Claim   Ref
	Request string
	At      manifest.Value
	// Shared: the claim does not keep others from having it, too.
	Shared bool
}

// allotted lists the devices that claims have.
func (w *World) allotted() []Allotted {
	var all []Allotted
	for _, c := range w.kinds["ResourceClaim"] {
		for r := range c.Get("status", "allocation", "devices", "results").Each() {
			all = append(all, Allotted{
				DeviceName: DeviceName{r.Get("driver").Text(), r.Get("pool").Text(), r.Get("device").Text()},
				Claim:      w.ref(c), Request: r.Get("request").Text(), At: r,
				Shared: r.Get("adminAccess").Text() == "true" || r.Get("shareID").Exists(),
			})
		}
	}
	return all
}

// function is a PCI function of a node.
type function struct{ node, address string }

// twoClaims compares the names of devices, and the functions that devices of different drivers are:
// what one driver publishes of one function more than once is for the driver to know.
func twoClaims(w *World) []Finding {
	published := map[DeviceName]Published{}
	for _, p := range w.published {
		published[p.DeviceName] = p
	}
	named, on := map[DeviceName]Allotted{}, map[function]Allotted{}
	var all []Finding
	for _, a := range w.allotted() {
		if a.Shared {
			continue
		}
		if was, taken := named[a.DeviceName]; taken {
			if was.Claim != a.Claim {
				all = append(all, both(a, was, a.DeviceName.String()))
			}
			continue
		}
		named[a.DeviceName] = a
		p := published[a.DeviceName]
		at := function{p.Node, p.Address}
		if p.Node == "" || p.Address == "" {
			continue
		}
		was, taken := on[at]
		switch {
		case !taken:
			on[at] = a
		case was.Claim != a.Claim && was.Driver != a.Driver:
			f := both(a, was, at.address+" of node "+at.node)
			all = append(all, f.because("%s and %s are that function", was.DeviceName, a.DeviceName))
		}
	}
	return all
}

func both(a, was Allotted, what string) Finding {
	return found(a.Claim, a.At, "%s and %s both have %s", was.Claim, a.Claim, what).with(was.At.Place(), "the other claim has it")
}

// allottedUnpublished is about pools of which the input has everything, or as much as the cluster has.
func allottedUnpublished(w *World) []Finding {
	published := map[DeviceName]bool{}
	for _, p := range w.published {
		published[p.DeviceName] = true
	}
	var all []Finding
	for _, a := range w.allotted() {
		p := w.poolOf[poolKey{a.Driver, a.Pool}]
		if published[a.DeviceName] || !p.whole() && !w.complete("ResourceSlice") {
			continue
		}
		f := found(a.Claim, a.At, "%s has %s, and no ResourceSlice has it", a.Claim, a.DeviceName)
		if p != nil && !p.whole() {
			f = f.as(finding.Note).because("the pool lacks slices, and the device may be in one that is still to come")
		}
		all = append(all, f)
	}
	return all
}
