package nicplugin

import (
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
	r, ok := rules.(*nic.Rules)
	if !ok {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range devices {
		info, has := r.DeviceInfo(resource, d)
		if !has {
			continue
		}
		if err := p.files.Write(resource, d.ID, info); err != nil {
			return err
		}
		p.granted[holding{resource, d.ID}] = p.now()
	}
	return nil
}

// release removes the files of devices that no container has.
func (p *plumbing) release(rules declare.Rules, held map[string][]string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
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
	return p.files.Sync(keep)
}
