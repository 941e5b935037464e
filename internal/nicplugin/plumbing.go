package nicplugin

import (
	"errors"
	"slices"
	"sync"
	"time"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/devinfo"
	"kata-device-plugin/internal/nic"
)

// grace is how long a device counts as held after it was granted, whatever kubelet's record
// says: kubelet writes that when it has our answer.
const grace = time.Minute

// plumbing keeps the device-info files that Multus and the CNI plugins read: one for each
// device that a container has. They are written before the answer that grants the device, and
// removed when kubelet's record has the device no more.
type plumbing struct {
	files devinfo.Files
	now   func() time.Time

	mu      sync.Mutex
	granted map[holding]time.Time
}

// holding is a device of a resource that somebody has.
type holding struct{ resource, device string }

func newPlumbing(dir string) *plumbing {
	return &plumbing{files: devinfo.Files{Dir: dir}, now: time.Now, granted: map[holding]time.Time{}}
}

// grant writes the files of devices that are about to be granted.
func (p *plumbing) grant(rules declare.Rules, resource string, devices []*declare.Device) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range devices {
		has, err := p.write(rules, resource, d)
		if err != nil {
			return err
		}
		if has {
			p.granted[holding{resource, d.ID}] = p.now()
		}
	}
	return nil
}

// write writes the file of a device, if it is one that has a file.
func (p *plumbing) write(rules declare.Rules, resource string, d *declare.Device) (has bool, err error) {
	r, ok := rules.(*nic.Rules)
	if !ok {
		return false, nil
	}
	info, has := r.DeviceInfo(resource, d)
	if !has {
		return false, nil
	}
	return true, p.files.Write(resource, d.ID, info)
}

// holders removes the files of devices that no container has, and writes those that are
// missing of devices that one has: the plugin that this one replaces removes its own when it
// ends, also those of running pods, whose sandbox may be made anew.
func (p *plumbing) holders(rules declare.Rules, announced []declare.Resource, held map[string][]string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, r := range announced {
		for i := range r.Devices {
			// Of a device that is hidden in a pod less is seen than when it was granted.
			if d := &r.Devices[i]; d.Present && slices.Contains(held[r.Name], d.ID) && !p.files.Has(r.Name, d.ID) {
				_, err := p.write(rules, r.Name, d)
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(append(errs, p.files.Sync(p.keep(rules, held)))...)
}

// keep are the devices of each resource that somebody has.
func (p *plumbing) keep(rules declare.Rules, held map[string][]string) map[string][]string {
	keep := make(map[string][]string)
	for _, n := range rules.Names() {
		keep[n.Resource] = nil
	}
	for resource, ids := range held {
		keep[resource] = append(keep[resource], ids...)
		for _, id := range ids {
			delete(p.granted, holding{resource, id}) // from here on the record decides
		}
	}
	for h, at := range p.granted {
		if p.now().Sub(at) < grace {
			keep[h.resource] = append(keep[h.resource], h.device)
		} else {
			delete(p.granted, h)
		}
	}
	return keep
}
