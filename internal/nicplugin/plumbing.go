package nicplugin

import (
	"errors"
	"slices"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/devinfo"
	"kata-device-plugin/internal/nic"
)

// plumbing keeps the device-info files that Multus and the CNI plugins read: one for each
// device that a container has. They are written before the answer that grants the device, and
// removed when no container has it. The agent never calls two of its methods at once.
type plumbing struct {
	files  devinfo.Files
	failed error // the last attempt to write one
}

// grant writes the files of devices that are about to be granted.
func (p *plumbing) grant(rules declare.Rules, resource string, devices []*declare.Device) error {
	p.failed = nil
	for _, d := range devices {
		if p.failed = p.write(rules, resource, d); p.failed != nil {
			return p.failed
		}
	}
	return nil
}

// write writes the file of a device, if it is one that has a file.
func (p *plumbing) write(rules declare.Rules, resource string, d *declare.Device) error {
	r, ok := rules.(*nic.Rules)
	if !ok {
		return nil
	}
	info, has := r.DeviceInfo(resource, d)
	if !has {
		return nil
	}
	return p.files.Write(resource, d.ID, info)
}

// holders removes the files of devices that no container has, and writes those that are
// missing of devices that one has: the plugin that this one replaces removes its own when it
// ends, also those of running pods, whose sandbox may be made anew. Files of resources that
// are not offered here are somebody else's.
func (p *plumbing) holders(rules declare.Rules, announced []declare.Resource, held map[string][]string) error {
	var errs []error
	if len(announced) > 0 {
		errs = append(errs, p.files.Writable())
	}
	if p.failed != nil && p.files.Probe() == nil {
		p.failed = nil // there is room again
	}
	errs = append(errs, p.failed)
	keep := make(map[string][]string)
	for _, n := range rules.Names() {
		keep[n.Resource] = held[n.Resource]
	}
	for _, r := range announced {
		keep[r.Name] = held[r.Name]
		for i := range r.Devices {
			// Of a device that is hidden in a pod less is seen than when it was granted.
			if d := &r.Devices[i]; d.Present && slices.Contains(held[r.Name], d.ID) && !p.files.Has(r.Name, d.ID) {
				errs = append(errs, p.write(rules, r.Name, d))
			}
		}
	}
	return errors.Join(append(errs, p.files.Sync(keep))...)
}
