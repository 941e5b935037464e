package nicplugin

import (
	"io/fs"
	"maps"
	"sync"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/hostnet"
	"kata-device-plugin/internal/pci"
)

// network reads links and routes, and makes sure that they are those of the namespace that
// /sys shows. That is asked again only when there are other links: it reads a file for each.
type network struct {
	sys  fs.FS
	same map[int]string // the links for which it was so, by index
}

func (n *network) links() (*host.Links, error) {
	l, err := hostnet.Links()
	if err != nil {
		return nil, err
	}
	names := make(map[int]string, len(l.Links))
	for i, link := range l.Links {
		names[i] = link.Name
	}
	if n.same != nil && maps.Equal(names, n.same) {
		return l, nil
	}
	if err := hostnet.SameNamespace(n.sys, hostnet.Links); err != nil {
		return nil, err
	}
	n.same = names
	return l, nil
}

// profiles asks devlink, where a pool wants to know: the answer comes from the firmware.
type profiles struct {
	wanted func() bool

	mu      sync.Mutex
	devlink *hostnet.Devlink // from the first question on
}

func (p *profiles) profile(a pci.Address) (string, error) {
	if !p.wanted() {
		return "", nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.devlink == nil {
		var err error
		if p.devlink, err = hostnet.OpenDevlink(); err != nil {
			return "", err
		}
	}
	return p.devlink.Profile(a)
}
