package prepare

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/deviceconfig"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/draname"
)

// devices are the devices that a claim is to have, each found fit to be handed out.
func (e *Engine) devices(uid string, wanted []want, inventory *dra.Inventory, view View) ([]claim.Device, error) {
	holders, err := e.holders(uid, view)
	if err != nil {
		return nil, err
	}
	all := make([]claim.Device, 0, len(wanted))
	var errs []error
	for _, w := range wanted {
		d, err := e.device(uid, w, inventory, view, holders)
		if err != nil {
			errs = append(errs, fmt.Errorf("device %s: %w", w.result.Device, err))
			continue
		}
		if i := slices.IndexFunc(all, func(other claim.Device) bool { return other.Name == d.Name }); i >= 0 && !slices.Equal(all[i].Nodes, d.Nodes) {
			errs = append(errs, fmt.Errorf("device %s: two requests of the claim have it, with the nodes %v and %v", d.Name, all[i].Nodes, d.Nodes))
		}
		all = append(all, d)
	}
	return all, errors.Join(errs...)
}

// device checks one of them.
func (e *Engine) device(uid string, w want, inventory *dra.Inventory, view View, holders map[string]string) (claim.Device, error) {
	d, there := inventory.Device(w.result.Device)
	if !there {
		return claim.Device{}, errors.New(absence(w.result.Device, inventory))
	}
	if !w.admin() { // admin access is for looking after devices, whatever becomes of them
		if err := e.fit(d, view, holders); err != nil {
			return claim.Device{}, err
		}
	}
	nodes, err := e.nodes(d, w.config.VFIONodes)
	if err != nil {
		return claim.Device{}, err
	}
	on := claim.Device{
		Pool: w.result.Pool, Name: d.Name, Address: d.Function.Address.String(), Requests: []string{w.result.Request},
		Admin: w.admin(), CDI: []string{cdi.QualifiedName(draname.ClaimKind, specName(uid, d.Name))}, Nodes: nodes,
	}
	for _, a := range d.Group {
		on.Group = append(on.Group, a.String())
	}
	if w.result.ShareID != nil {
		on.ShareID = string(*w.result.ShareID)
	}
	return on, nil
}

// fit says why a device cannot be handed out, nil when it can.
func (e *Engine) fit(d *dra.Device, view View, holders map[string]string) error {
	if err := e.Owns(d.Type); err != nil {
		return err
	}
	if !d.Healthy() {
		return errors.New(d.Faults[0].String())
	}
	for _, a := range d.Group { // what is isolated together is handed out together
		address := a.String()
		if holder, held := holders[address]; held {
			return fmt.Errorf("%s is held by %s", address, holder)
		}
		if whose, plugged := view.Plugged[address]; plugged {
			return fmt.Errorf("%s is a device plugin's: %s", address, whose)
		}
	}
	return nil
}

// nodes are the paths on the host of what a container gets for a device.
func (e *Engine) nodes(d *dra.Device, which deviceconfig.VFIONodes) ([]string, error) {
	if which != deviceconfig.Group {
		return d.Nodes, nil
	}
	node := groupNode(d)
	if !e.HasNode(node) {
		return nil, fmt.Errorf("vfioNodes group: there is no node %s", node)
	}
	return []string{node}, nil
}

// groupDir is where the kernel has the nodes of IOMMU groups (drivers/vfio/group.c).
const groupDir = "/dev/vfio/"

func groupNode(d *dra.Device) string { return groupDir + d.Function.Group.Number }

// holders are the functions that other claims hold, and in words which. Kubelet's word counts as
// well: a container may have a device of which the record is lost.
func (e *Engine) holders(uid string, view View) (map[string]string, error) {
	records, broken, err := e.Records.List()
	if err != nil {
		return nil, err
	}
	all, recorded := map[string]string{}, map[string]bool{uid: true}
	for _, r := range records {
		recorded[r.UID] = true
		for _, d := range r.Devices {
			for _, a := range d.Group {
				if r.UID != uid && !d.Admin {
					all[a] = "claim " + r.Namespace + "/" + r.Name + " (" + r.UID + "), " + strings.ToLower(string(r.State))
				}
			}
		}
	}
	for other, use := range view.Claims {
		if _, released, err := e.Records.Released(other); err != nil {
			return nil, err
		} else if released {
			continue // kubelet tears the pod down, and will not name it much longer
		}
		for _, a := range use.Addresses {
			if !recorded[other] {
				all[a] = "claim " + use.Claim + " (" + other + "), which a container has"
			}
		}
	}
	for _, b := range broken {
		for _, a := range e.remains(b) {
			if b.UID != uid {
				all[a] = "a claim whose record cannot be read (" + b.UID + ")"
			}
		}
	}
	return all, nil
}

// remains are the functions that a claim has whose record cannot be trusted: what can still be
// read of it, or else what its CDI spec names.
func (e *Engine) remains(b claim.Damaged) []string {
	all := slices.Clone(b.Group)
	for _, d := range e.file(b.UID).Read() {
		if _, a, ok := draname.Parse(d.Name); ok && !slices.Contains(all, a.String()) {
			all = append(all, a.String())
		}
	}
	return all
}

// absence says why a device that was allocated is not there.
func absence(name string, inventory *dra.Inventory) string {
	address, ok := addressOf(name)
	if !ok {
		return "no device of this driver has such a name"
	}
	if f, known := inventory.Why(address); known {
		return f.String()
	}
	return "there is no such device on the node"
}

// addressOf is the PCI address in the name of a device.
func addressOf(name string) (string, bool) {
	uid, a, ok := draname.Parse(name)
	return a.String(), ok && uid == ""
}
