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
	"kata-device-plugin/internal/finding"
)

// specName is the name of a claim's device in CDI. The UID is in it because runtimes keep what
// they have read of a name: one that comes back would be taken for what it was.
func specName(uid, device string) string { return uid + "-" + device }

// file is the CDI spec of a claim.
func (e *Engine) file(uid string) *cdi.File {
	return cdi.NewFile(e.CDI, draname.SpecOwner(uid), draname.ClaimKind)
}

// resolve writes the CDI spec of a claim: those of its devices that are there, with the nodes that
// they have now. A number of VFIO's goes to the next device that is bound, so a node that was
// right when the claim was prepared may be another device's.
func (e *Engine) resolve(devices []claim.Device, uid string, inventory *dra.Inventory) error {
	var all []cdi.Device
	for i := range devices {
		d := &devices[i]
		now, there := inventory.Device(d.Name)
		switch why, known := inventory.Why(d.Address); {
		case there:
			d.Nodes = nodesNow(d, now)
		case !known || why.ID != finding.Unreadable().ID:
			continue // what could not be read is not gone
		}
		on := cdi.Device{Name: specName(uid, d.Name)}
		for _, n := range d.Nodes {
			on.Nodes = append(on.Nodes, cdi.Node{Path: n, Permissions: "rw"})
		}
		if !slices.ContainsFunc(all, func(other cdi.Device) bool { return other.Name == on.Name }) {
			all = append(all, on)
		}
	}
	if _, err := e.file(uid).Sync(all); err != nil {
		return fmt.Errorf("make the devices known to container runtimes: %w", err)
	}
	return nil
}

// nodesNow are the nodes of a device of the kind that the claim has.
func nodesNow(d *claim.Device, now *dra.Device) []string {
	for _, n := range d.Nodes {
		if strings.HasPrefix(n, groupDir) && !strings.Contains(strings.TrimPrefix(n, groupDir), "/") {
			return []string{groupNode(now)}
		}
	}
	return now.Nodes
}

// forget removes the CDI spec of a claim, and what a process left that was killed while it wrote
// one.
func (e *Engine) forget(uid string) error {
	file := e.file(uid)
	_, err := file.Sync(nil)
	if err = errors.Join(err, file.Sweep()); err != nil {
		return fmt.Errorf("take the devices from container runtimes: %w", err)
	}
	return nil
}
