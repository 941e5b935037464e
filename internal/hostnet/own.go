package hostnet

import (
	"io/fs"
	"maps"
	"sync"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
)

// Own reads links and routes, and makes sure that they are those of the namespace that /sys
// shows. That is asked again only when there are other links: it reads a file for each. It is for one
// goroutine.
type Own struct {
	sys  fs.FS
	same map[int]string // the links for which it was so, by index
}

// OwnOf is for the sysfs in which the links' functions are looked at.
func OwnOf(sys fs.FS) *Own { return &Own{sys: sys} }

// Links are the links and routes, for host.Source.
func (o *Own) Links() (*host.Links, error) {
	l, err := Links()
	if err != nil {
		return nil, err
	}
	names := make(map[int]string, len(l.Links))
	for i, link := range l.Links {
		names[i] = link.Name
	}
	if o.same != nil && maps.Equal(names, o.same) {
		return l, nil
	}
	if err := SameNamespace(o.sys, Links); err != nil {
		return nil, err
	}
	o.same = names
	return l, nil
}

// Profiles asks devlink for DDP packages, where somebody wants to know: the answer comes from the
// firmware.
type Profiles struct {
	wanted func() bool

	mu      sync.Mutex
	devlink *Devlink // from the first question on
}

// ProfilesIf asks while wanted says so.
func ProfilesIf(wanted func() bool) *Profiles { return &Profiles{wanted: wanted} }

// Profile is the name of the package of a function, "" where nobody wants to know.
func (p *Profiles) Profile(a pci.Address) (string, error) {
	if !p.wanted() {
		return "", nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.devlink == nil {
		var err error
		if p.devlink, err = OpenDevlink(); err != nil {
			return "", err
		}
	}
	return p.devlink.Profile(a)
}
