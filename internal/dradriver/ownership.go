package dradriver

import (
	"errors"
	"slices"
	"sync"

	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/nodelock"
)

// lockOf is the resource whose lock keeps device plugins and this driver from offering devices of
// a type both. Plugins take it for themselves, and the driver's instances share it.
func lockOf(t dra.Type) string {
	switch t {
	case dra.GPU:
		return "nvidia.com/gpu"
	case dra.NVSwitch:
		return "nvidia.com/nvswitch"
	case dra.NIC, dra.VF:
	}
	return nodelock.NICs
}

// ownership says which types of devices this driver may offer on this node.
type ownership struct {
	dir, holder string

	mu      sync.Mutex
	locks   map[string]*nodelock.Kept // by resource
	refused map[dra.Type]finding.Finding
	known   bool
}

func newOwnership(dir, holder string) *ownership {
	return &ownership{dir: dir, holder: holder, locks: map[string]*nodelock.Kept{}}
}

// settle takes the locks of types of which there are devices, and keeps those that it has. A type
// of which the node has an allocatable resource is a device plugin's, whoever's plugin that is.
func (o *ownership) settle(inventory *dra.Inventory, excluded []dra.Type, allocatable map[string]int64) map[dra.Type]finding.Finding {
	o.mu.Lock()
	defer o.mu.Unlock()
	refused := map[dra.Type]finding.Finding{}
	for i := range inventory.Devices {
		t := inventory.Devices[i].Type
		if _, done := refused[t]; done {
			continue
		}
		if f, bad := o.judge(t, excluded, allocatable); bad {
			refused[t] = f
		}
	}
	o.refused, o.known = refused, true
	return refused
}

// judge says what speaks against offering a type.
func (o *ownership) judge(t dra.Type, excluded []dra.Type, allocatable map[string]int64) (finding.Finding, bool) {
	if slices.Contains(excluded, t) {
		return finding.New(finding.TypeExcluded(), "", finding.Evidence{Path: "--types", Value: "without " + string(t)}), true
	}
	resource := lockOf(t)
	err := o.hold(resource)
	switch {
	case errors.Is(err, nodelock.ErrHeld):
		return finding.New(finding.HeldElsewhere(), "", finding.Evidence{Path: err.Error()}).For(resource), true
	case err != nil:
		return finding.New(finding.LockUnusable(), "", finding.Evidence{Path: err.Error()}).For(resource), true
	case allocatable[resource] > 0:
		return finding.New(finding.StillAllocatable(), "", finding.Evidence{Path: "the node's status.allocatable", Value: resource}).For(resource), true
	}
	return finding.Finding{}, false
}

// hold takes the lock of a resource, or keeps it.
func (o *ownership) hold(resource string) error {
	lock := o.locks[resource]
	if lock == nil {
		lock = nodelock.NewKeptShared(o.dir, resource, o.holder)
		o.locks[resource] = lock
	}
	_, err := lock.Take()
	return err
}

// owns says why devices of a type must not be handed out, nil when they may.
func (o *ownership) owns(t dra.Type) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.known {
		return errors.New("the driver has only just started, and does not know yet whether a device plugin offers the device")
	}
	if f, refused := o.refused[t]; refused {
		return errors.New(f.String())
	}
	if !o.locks[lockOf(t)].Held() {
		return errors.New("the driver does not have the node's lock of " + lockOf(t))
	}
	return nil
}

// release gives all locks up.
func (o *ownership) release() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for _, l := range o.locks {
		errs = append(errs, l.Release())
	}
	clear(o.locks)
	return errors.Join(errs...)
}
