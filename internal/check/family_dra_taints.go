package check

import "kata-device-plugin/internal/manifest"

// allTainted says so of a claim with a request for which there is no device without a taint. Nothing
// is said of a request whose selectors are not understood.
func (w *World) allTainted(f Finding, claim *manifest.Object) Finding {
	const shown = 3
	for _, r := range requests(claim) {
		class := w.class(r.class.Text())
		if class == nil || r.Get("adminAccess").Text() == "true" {
			continue
		}
		m, err := w.Matching(class.Get("spec", "selectors"), r.selectors)
		if err != nil {
			continue
		}
		g, all, n := f, true, 0
		for p := range m.Taken() {
			t, tainted := p.untolerated(r.Value)
			if all = tainted; !all {
				break
			}
			if n++; n <= shown {
				g = g.with(p.Device.Get("taints").Place(), "device %s of node %s is tainted: %s", p.DeviceName.Device, p.Node, t)
			}
		}
		if !all || n == 0 {
			continue
		}
		if more := n - shown; more > 0 {
			g = g.because("and %d more devices are tainted", more)
		}
		f = g.because("every device of the input that request %s matches is tainted", r.name).
			advise("look at the driver for why it taints the devices, or tolerate the taint in the request")
	}
	return f
}

// class is a device class of the input, nil where there is none of the name.
func (w *World) class(name string) *manifest.Object {
	for _, o := range w.kinds["DeviceClass"] {
		if o.Name == name {
			return o
		}
	}
	return nil
}
