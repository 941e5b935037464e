package prepare

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/pci"
)

// State is what the records amount to.
type State struct {
	Records []claim.Record
	Damaged []claim.Damaged
	// Withheld are functions of claims whose records cannot be trusted, by address, and why.
	Withheld map[string]string
}

// Reconcile makes what is on disk agree with an inventory: it ends what an earlier process began
// and did not end, makes the CDI specs of prepared claims name what is there, and removes those
// that belong to no claim. What containers have by kubelet's last word is left alone; view is nil
// while kubelet has never answered. It goes on after an error. It does not wait: while a call has the
// records the error is claim.ErrBusy, and the call may itself be waiting for whoever wants this.
func (e *Engine) Reconcile(inventory *dra.Inventory, view *View) (State, error) {
	unlock, err := e.Records.TryLock()
	if err != nil {
		return State{}, err
	}
	s, err := e.reconcile(inventory, view)
	return s, errors.Join(err, unlock())
}

func (e *Engine) reconcile(inventory *dra.Inventory, view *View) (State, error) {
	records, broken, err := e.Records.List()
	if err != nil {
		return State{}, err
	}
	s := State{Withheld: map[string]string{}}
	known := map[string]bool{}
	var errs []error
	for _, r := range records {
		known[r.UID] = true
		kept, err := e.settle(r, inventory)
		if err != nil {
			errs = append(errs, fmt.Errorf("claim %s/%s: %w", r.Namespace, r.Name, err))
		}
		if kept != nil {
			s.Records = append(s.Records, *kept)
		}
	}
	for _, b := range broken {
		known[b.UID] = true
		errs = append(errs, e.aside(b))
		for _, a := range e.remains(b) {
			s.Withheld[a] = "the record " + b.Path + " cannot be read: " + b.Err.Error()
		}
	}
	s.Damaged = broken
	if view == nil {
		return s, errors.Join(errs...)
	}
	for uid, use := range view.Claims {
		// kubelet's word may be older than the release of a claim.
		_, released, err := e.Records.Released(uid)
		errs = append(errs, err)
		for _, a := range use.Addresses {
			if !known[uid] && !released {
				s.Withheld[a] = "a container has it by claim " + use.Claim + " (" + uid + "), of which there is no record"
			}
		}
		known[uid] = known[uid] || !released
	}
	return s, errors.Join(append(errs, e.sweepSpecs(known))...)
}

// settle brings one claim up to date. It returns what is left of it.
func (e *Engine) settle(r claim.Record, inventory *dra.Inventory) (*claim.Record, error) {
	switch {
	case r.State == claim.Unpreparing:
		return nil, e.unprepare(r.UID)
	case r.State == claim.Prepared && r.Boot == e.Boot:
		before := r.Devices
		if !e.upToDate(before, inventory) {
			return &r, nil // another look is on its way
		}
		r.Devices = append([]claim.Device(nil), before...)
		if err := e.resolve(r.Devices, r.UID, inventory); err != nil {
			return &r, err
		}
		if !sameNodes(before, r.Devices) {
			return &r, e.Records.Put(r)
		}
		return &r, nil
	case r.State == claim.Prepared:
		// The node has started anew, and with it every pod: kubelet asks again for those that
		// it still wants. Until then the hardware is the claim's, and nothing resolves.
		r.State, r.Boot, r.Changed = claim.Preparing, e.Boot, e.Now()
		if err := e.Records.Put(r); err != nil {
			return &r, err
		}
	}
	return &r, e.forget(r.UID)
}

// upToDate says whether what an inventory says of devices is so at this moment. Since it was made
// somebody else may have had the lock, and a number of VFIO's may be another device's.
func (e *Engine) upToDate(devices []claim.Device, inventory *dra.Inventory) bool {
	for _, d := range devices {
		now, there := inventory.Device(d.Name)
		if there && slices.ContainsFunc(now.Nodes, func(node string) bool { return !e.isOf(now, node) }) {
			return false
		}
	}
	return true
}

// isOf says whether a node is that of a function of a device's group at this moment.
func (e *Engine) isOf(d *dra.Device, node string) bool {
	return slices.ContainsFunc(d.Group, func(a pci.Address) bool { return e.Current(a.String(), node) })
}

// aside puts a record away that cannot be trusted, once. One that is named for no claim is left to
// whoever has put it there.
func (e *Engine) aside(b claim.Damaged) error {
	if b.Quarantined || b.Newer || b.Unread || b.UID == "" {
		return nil
	}
	return e.putAside(b.UID, b.Err)
}

func (e *Engine) putAside(uid string, why error) error {
	if err := e.Records.Quarantine(uid); err != nil {
		return err
	}
	e.Log.Error("put the record of a claim aside, which cannot be read", "claim", uid, "reason", why.Error())
	return nil
}

// sweepSpecs removes the CDI specs of claims that there is no record of.
func (e *Engine) sweepSpecs(known map[string]bool) error {
	orphans, err := cdi.Orphans(e.CDI, draname.Specs, nil)
	errs := []error{err}
	for _, o := range orphans {
		uid, _, _ := strings.Cut(o.Name, ".")
		if known[uid] {
			continue
		}
		if err := o.Remove(); err != nil {
			errs = append(errs, err)
			continue
		}
		e.Log.Info("removed the CDI spec of a claim that there is no record of", "claim", uid)
	}
	return errors.Join(errs...)
}
