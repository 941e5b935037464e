package declare

import (
	"errors"
	"strconv"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
)

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// Refusal is the reason why a candidate is no device at all.
func Refusal(f *host.Function) (finding.Finding, bool) {
	id := f.Address.String()
	driver := finding.Evidence{Path: host.SysPath(f.Address, "driver"), Value: orNone(f.Driver)}
	refuse := func(k finding.Kind, e ...finding.Evidence) (finding.Finding, bool) {
		return finding.New(k, id, e...), true
	}
	switch {
	case !f.Known:
		return Unreadable(f), true
	case f.PhysFn != nil:
		return refuse(finding.VirtualFunction(), finding.Evidence{Path: host.SysPath(f.Address, "physfn"), Value: f.PhysFn.String()})
	case f.Group == nil && (f.Cdev != nil || f.Driver == ""):
		return refuse(finding.NoIOMMUGroup(), finding.Evidence{Path: host.SysPath(f.Address, "iommu_group"), Value: "none"})
	case f.Cdev == nil:
		return refuse(finding.NoCdev(), driver)
	}
	detail := finding.Evidence{Path: f.Cdev.Detail}
	switch f.Cdev.State {
	case host.CdevReady:
		return finding.Finding{}, false
	case host.CdevNoNumber:
		return refuse(finding.NoCdevNumber(), detail)
	case host.CdevNotChar:
		return refuse(finding.NotCharDevice(), detail)
	case host.CdevOtherNumber:
		return refuse(finding.OtherNumber(), detail)
	case host.CdevNoIOMMU:
		return refuse(finding.NoIOMMUMode(), detail)
	case host.CdevPending:
	}
	return refuse(finding.NotYet(), detail)
}

// Unreadable has a piece of evidence for each thing that could not be read.
func Unreadable(f *host.Function) finding.Finding {
	errs := []error{f.Err}
	var joined interface{ Unwrap() []error }
	if errors.As(f.Err, &joined) {
		errs = joined.Unwrap()
	}
	evidence := make([]finding.Evidence, len(errs))
	for i, err := range errs {
		evidence[i].Path = err.Error()
	}
	return finding.New(finding.Unreadable(), f.Address.String(), evidence...)
}

func class(f *host.Function) finding.Evidence {
	return finding.Evidence{Path: host.SysPath(f.Address, "class"), Value: f.Class.String()}
}

// Faults are the reasons why a device, though there, would not start in a VM.
func Faults(f *host.Function, resource string) []finding.Finding {
	var all []finding.Finding
	fault := func(k finding.Kind, e ...finding.Evidence) {
		all = append(all, finding.New(k, f.Address.String(), e...).For(resource))
	}
	if len(f.VFs) > 0 {
		fault(finding.HasVFs(), finding.Evidence{Path: host.SysPath(f.Address, "sriov_numvfs"), Value: strconv.Itoa(len(f.VFs))})
	}
	// Kata's Go shim finds the address with an unanchored pattern of four domain
	// digits: 10000:01:00.0 silently becomes 0000:01:00.0, which is another device.
	if f.Address.Domain > 0xffff {
		fault(finding.WideDomain(), finding.Evidence{Path: "/sys/bus/pci/devices/" + f.Address.String()})
	}
	for _, m := range f.Companions() {
		if !YieldsDMA(m) {
			fault(finding.NotViable(), finding.Evidence{
				Path: host.SysPath(m.Address, "driver"), Value: m.Driver,
			})
		}
	}
	return all
}

// YieldsDMA says whether a companion leaves DMA ownership of its group to VFIO: it has
// no driver, a driver that gave it a VFIO device, or one of the two that declare that
// they do no DMA of their own (driver_managed_dma in drivers/pci/pcie/portdrv.c and
// drivers/pci/pci-stub.c). Any other driver takes the group's default domain when it
// is bound, and VFIO's claim is refused with EPERM.
func YieldsDMA(m host.Member) bool {
	return m.Driver == "" || m.VFIO || m.Driver == "pcieport" || m.Driver == "pci-stub"
}

// Entries are the findings about what is no PCI function with a character device.
func Entries(s *host.Snapshot) []finding.Finding {
	var all []finding.Finding
	for _, e := range s.Strays {
		k := finding.Unreadable()
		switch e.Kind {
		case host.StrayJunkName:
			k = finding.JunkName()
		case host.StrayNotChar:
			k = finding.NotCharDevice()
		case host.StrayOrphan:
			k = finding.NotYet()
		case host.StrayNotPCI:
			k = finding.NotPCI()
		case host.StrayNoIOMMU:
			k = finding.NoIOMMUMode()
		case host.StrayUnreadable:
		}
		all = append(all, finding.New(k, e.Name, finding.Evidence{Path: e.Path, Value: e.Detail}))
	}
	for _, err := range s.Unread {
		all = append(all, finding.New(finding.Unlisted(), "", finding.Evidence{Path: err.Error()}))
	}
	return all
}

// Stale is the finding that the mounted /dev/vfio is not the host's: a function is bound,
// sysfs states its device number, and there is no node. For a moment that is normal at
// every bind; when it lasts, the directory is not the one that the kernel writes to. Of
// several devices the first is named: how many there are says nothing more.
func Stale(s *host.Snapshot) []finding.Finding {
	for i := range s.Functions {
		f := &s.Functions[i]
		if f.Err == nil && f.Driver != "" && f.Cdev != nil && f.Cdev.State == host.CdevPending {
			return []finding.Finding{finding.New(finding.StaleMount(), "",
				finding.Evidence{Path: host.DevicesDir, Value: "without " + f.Cdev.Name})}
		}
	}
	return nil
}
