package nic

import (
	"encoding/json"
	"maps"
	"strings"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/devinfo"
	"kata-device-plugin/internal/nicconfig"
)

// Environment are the variables of a container that gets devices of a resource, in the
// order in which it asked for them: the IDs, and what is known about each. Shares of RDMA
// devices have none, as with the old plugin.
func (r *Rules) Environment(resource string, devices []*declare.Device) map[string]string {
	p := r.pool(resource)
	if p == nil || len(devices) == 0 {
		return nil
	}
	ids := make([]string, len(devices))
	about := make(map[string]map[string]map[string]string, len(devices))
	for i, d := range devices {
		ids[i], about[d.ID] = d.ID, maps.Clone(d.About)
		delete(about[d.ID], eswitch)
	}
	info, err := json.Marshal(about) // sorts the keys
	if err != nil {
		return nil // which maps of strings do not give
	}
	return map[string]string{p.Resource.Variable(): strings.Join(ids, ","), p.Resource.InfoVariable(): string(info)}
}

// eswitch is the source of what only the device-info file says of a device: its representor,
// which is an interface of the PF, and is in no snapshot of the device alone.
const eswitch = "eswitch"

// DeviceInfo is what the device-info file of a device says. It reports false for what has no
// such file: subfunctions, accelerators and shares.
func (r *Rules) DeviceInfo(resource string, d *declare.Device) (devinfo.Info, bool) {
	p := r.pool(resource)
	if p == nil || p.DeviceType != nicconfig.NetDevice || d.About == nil {
		return devinfo.Info{}, false
	}
	f, pf, standIn := &d.Function, "", d.About[eswitch]["representor"]
	if f.PhysFn != nil {
		pf = f.PhysFn.String()
	}
	if _, vdpa := d.About["vdpa"]; vdpa && f.Network != nil && len(f.Network.VDPA) > 0 {
		v := f.Network.VDPA[0]
		return devinfo.Info{VDPA: &devinfo.VDPA{
			ParentDevice: v.Name, Driver: strings.TrimSuffix(v.Driver, "_vdpa"), Path: d.About["vdpa"]["mount"],
			Address: d.ID, PFAddress: pf, RepresentorDevice: standIn,
		}}, true
	}
	info := &devinfo.PCI{Address: d.ID, VhostNet: d.About["vhost"]["net-mount"], PFAddress: pf, RepresentorDevice: standIn}
	if _, rdma := d.About["rdma"]; rdma && f.Network != nil {
		var names []string
		for _, dev := range f.Network.RDMA {
			names = append(names, dev.Name)
		}
		info.RDMADevice = strings.Join(names, ",")
	}
	return devinfo.Info{PCI: info}, true
}
