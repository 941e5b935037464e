package finding

import (
	"slices"
	"strings"
)

// Kind is an entry of the catalogue. Its ID is stable: it may be searched for, alerted
// on and suppressed by.
type Kind struct {
	ID       string
	Severity Severity
	// Title says what is the case.
	Title string
	// Remedy says what a person can do about it.
	Remedy string
	// Passing: the kernel passes through the state while it binds or unbinds a driver. It
	// is worth a word only when it lasts.
	Passing bool
	// Blocks: a program with the finding is not ready.
	Blocks bool
}

func kind(id string, severity Severity, title, remedy string) Kind {
	return Kind{ID: id, Severity: severity, Title: title, Remedy: remedy}
}

// passing and blocking mark a kind.
func passing(k Kind) Kind  { k.Passing = true; return k }
func blocking(k Kind) Kind { k.Blocks = true; return k }

// Why a function is not declared, or is declared and not healthy (family HST).

// NoIOMMUGroup: the function cannot be isolated. A new VF is there for a moment before
// its group is.
func NoIOMMUGroup() Kind {
	return passing(kind("HST001", Error, "the function is in no IOMMU group",
		"switch the IOMMU on in the firmware and on the kernel command line (intel_iommu=on, amd_iommu=on, or arm-smmu)"))
}

// NotViable: another function of the group is in the kernel's hands.
func NotViable() Kind {
	return kind("HST002", Error, "a companion in the IOMMU group is bound to a driver that keeps DMA ownership",
		"bind the companion to vfio-pci, or to no driver, on the host")
}

// NoCdev: the function is not bound to VFIO.
func NoCdev() Kind {
	return kind("HST020", Note, "the function has no VFIO character device",
		"bind it to its VFIO driver on the host, if it is meant for passthrough")
}

// NoCdevNumber: VFIO without character devices.
func NoCdevNumber() Kind {
	return passing(kind("HST021", Error, "the VFIO device has no character device",
		"use a kernel of 6.6 or later with CONFIG_VFIO_DEVICE_CDEV and CONFIG_IOMMUFD, and an IOMMU that is switched on"))
}

// NoIOMMUMode: VFIO's unsafe mode.
func NoIOMMUMode() Kind {
	return kind("HST022", Error, "the VFIO device works without an IOMMU",
		"switch the IOMMU on and enable_unsafe_noiommu_mode off: a guest could write to all of the host's memory")
}

// VirtualFunction: VFs are not whole devices.
func VirtualFunction() Kind {
	return kind("HST023", Note, "the function is an SR-IOV virtual function",
		"nothing: only whole devices are declared")
}

// NotPCI: a mediated or platform device.
func NotPCI() Kind {
	return kind("HST024", Note, "the VFIO device is no PCI function", "nothing: only PCI functions are declared")
}

// JunkName: not the kernel's work.
func JunkName() Kind {
	return kind("HST025", Warning, "the entry is not named as the kernel names VFIO devices",
		"remove it: only the kernel makes entries there")
}

// NotCharDevice: not the kernel's work either.
func NotCharDevice() Kind {
	return kind("HST026", Error, "the entry is no character device",
		"remove it and bind the function anew: only the kernel makes entries there")
}

// OtherNumber: the node would open another device.
func OtherNumber() Kind {
	return kind("HST027", Error, "the node's device number is not the one that sysfs states",
		"remove the node and bind the function anew: opening it would reach another device")
}

// NotYet: the kernel is in the middle of something.
func NotYet() Kind {
	return passing(kind("HST028", Note, "the VFIO device is not complete yet", "wait: the kernel is binding or unbinding a driver"))
}

// HasVFs: a PF whose VFs are in use.
func HasVFs() Kind {
	return kind("HST029", Error, "the function is a PF with virtual functions enabled",
		"write 0 to sriov_numvfs on the host, or do not bind the PF to a VFIO driver")
}

// WideDomain: consumers cut the domain.
func WideDomain() Kind {
	return kind("HST030", Error, "the PCI domain has more than four digits",
		"switch Intel VMD off for this slot: Kata Containers would take the device at the shortened address instead")
}

// Unreadable: unknown is not a value.
func Unreadable() Kind {
	return kind("HST031", Error, "the function could not be read",
		"look at the kernel log for the device; the last known state is kept")
}

// Gone: the function or its VFIO device has left.
func Gone() Kind {
	return kind("HST032", Error, "the device has left", "bind the function to its VFIO driver again, or look at the kernel log for why it fell off the bus")
}

// StaleMount: the directory that the container sees is not the host's.
func StaleMount() Kind {
	return passing(blocking(kind("HST033", Error, "sysfs lists VFIO devices that the mounted directory does not show",
		"restart the pod: the mounted directory has been replaced on the host; mount /dev/vfio, not /dev/vfio/devices, and where the kernel removes even that with its last device (CONFIG_VFIO_GROUP=n), make it before the pod starts")))
}

// Unlisted: a directory of the host cannot be read.
func Unlisted() Kind {
	return blocking(kind("HST034", Error, "a directory of the host could not be listed", "look at the error; the last known state is kept"))
}

// ChangedClass: another device sits in the slot.
func ChangedClass() Kind {
	return kind("HST035", Error, "the function in this slot is no longer of this resource", "nothing, if the evidence names the resource that it is meant for; restart the plugin if the hardware was exchanged on purpose, so that it forgets the device")
}

// What the NIC plugin says of a node's network hardware (family HST as well).

// HostInUse: a pod would take the host's own network away.
func HostInUse() Kind {
	return kind("HST006", Warning, "the host reaches its network through the device",
		"nothing, if it is the host's own NIC; otherwise remove the default route, or set allowHostInUse in the pool")
}

// RDMAIncomplete: without its nodes an RDMA device is of no use to a container.
func RDMAIncomplete() Kind {
	return passing(kind("HST008", Error, "a part of the RDMA device is missing",
		"load the kernel module that the evidence names, or the RDMA driver of the function; a shared pool may do without some nodes: see rdmaNodes"))
}

// NoDriver: a VF is without one for a moment after it was made.
func NoDriver() Kind {
	return passing(kind("HST036", Error, "the function has no driver", "bind it to the driver that its users need, on the host"))
}

// NodeMissing: what a container has to be given is not there.
func NodeMissing() Kind {
	return passing(kind("HST037", Error, "a device node is missing or not what it should be",
		"load the kernel module that makes the node (vfio, vhost_net, tun, vhost_vdpa), and look whether the pod's /dev is the host's"))
}

// Unseen: a fact that decides is in another network namespace.
func Unseen() Kind {
	return passing(kind("HST038", Warning, "what decides whose device it is cannot be seen from the host",
		"look which network namespace has the interface or the RDMA device; it is declared once it is back, or when kubelet's record says whose it is"))
}

// ReplacedByVFs: a PF is either whole or in parts.
func ReplacedByVFs() Kind {
	return kind("HST039", Note, "the PF has virtual functions, which are declared in its place",
		"write 0 to sriov_numvfs on the host, if the PF as a whole is meant to be handed out")
}

// LinksUnknown: unknown is not free.
func LinksUnknown() Kind {
	return blocking(kind("HST040", Error, "which interfaces the host uses itself could not be read",
		"look at the error; a pool with allowHostInUse does not need to know"))
}

// Deselected: the device is another one to the configuration now.
func Deselected() Kind {
	return kind("HST041", Error, "the device no longer matches the selectors of its resource",
		"undo the change on the host, or change the selectors")
}

// HeldAs: one device must not have two owners.
func HeldAs() Kind {
	return kind("HST042", Warning, "a pod still holds the device as another resource",
		"wait until the pod has ended, which is noticed within ten seconds; without kubelet's PodResources service it takes until kubelet allocates the next device")
}

// NotSelected: as the configuration wants it.
func NotSelected() Kind {
	return kind("HST043", Note, "no pool selects the function", "nothing, if it is not meant for pods; the evidence has the first selector of each pool that it does not match")
}

// NoRDMA: a shared pool has a use for RDMA devices only.
func NoRDMA() Kind {
	return kind("HST044", Note, "a shared pool selects the function, which has no RDMA device",
		"load the RDMA driver of the function (mlx5_ib, irdma, bnxt_re and so on), or narrow the selectors")
}

// NotDealt: the pool's budget is a number of shares over all devices.
func NotDealt() Kind {
	return kind("HST045", Note, "the share is not part of the pool's budget now: other devices of the pool have it",
		"nothing: a container gets the nodes of all devices of the pool; with sharesPerDevice each device has shares of its own")
}

// Claimed: a VM may have it, also when the DRA driver has gone.
func Claimed() Kind {
	return kind("HST046", Warning, "a DRA claim holds the device",
		"end the pod that uses the claim, whose UID begins the name in the evidence; if the DRA driver has been removed and no pod uses the claim any more, remove the file")
}

// What kata-dra-driver says of devices that it does not publish (family HST as well).

// ComesWith: one IOMMU group is one device, with all its functions of the type.
func ComesWith() Kind {
	return kind("HST048", Note, "the function comes with the device that stands for its IOMMU group", "nothing: whoever has that device has the function as well")
}

// SharesGroup: what is isolated together is one device.
func SharesGroup() Kind {
	return kind("HST047", Warning, "another function of the IOMMU group is the device that stands for the group",
		"have the ports above the functions separate them (ACS) for groups of their own; a claim of the device holds the whole group")
}

// What the pools of a configuration come to on this node (family CFG).

// Overlap: the order of the pools decides.
func Overlap() Kind {
	return kind("CFG005", Warning, "a pool selects devices that a pool before it has", "narrow the selectors of one of the two")
}

// NoShares: a budget of nothing.
func NoShares() Kind {
	return kind("CFG007", Warning, "rdmaHcaMax is 0, so the resource has no shares", "set rdmaHcaMax, or sharesPerDevice instead of it")
}

// Shadowed: a pool behind another one that takes all.
func Shadowed() Kind {
	return kind("CFG015", Warning, "pools before it have all devices that the pool selects", "put the pool with the narrower selectors first")
}

// NothingSelected: of several kinds of nodes with one configuration it may be meant so.
func NothingSelected() Kind {
	return kind("CFG016", Note, "the pool selects no device of this node", "nothing, if the node has none; the evidence says how many functions each selector left out")
}

// SharedAndWhole: what is handed out whole is expected to have one owner.
func SharedAndWhole() Kind {
	return kind("CFG017", Warning, "devices of a shared pool are handed out whole by another pool as well", "narrow the selectors of one of the two")
}

// What keeps a device from being handed out although it is there (families CDI, PLG).

// SpecRejected: consumers refuse the whole directory for one bad file.
func SpecRejected() Kind {
	return kind("CDI004", Warning, "a CDI spec of another owner cannot be parsed",
		"mend or remove the file: Kata Containers refuses every CDI device while it is there")
}

// SpecTooNew: Kata's Go shim reads with an old library.
func SpecTooNew() Kind {
	return kind("CDI005", Warning, "a CDI spec of another owner declares a version that Kata's Go shim refuses",
		"have its owner write cdiVersion 0.6.0 or lower: the shim refuses every CDI device while the file is there")
}

// SpecUnexamined: to parse YAML takes hundreds of times its size in memory, and what may not be read here
// is read by others.
func SpecUnexamined() Kind {
	return kind("CDI015", Note, "a CDI spec of another owner cannot be examined",
		"nothing, if consumers accept it; what is wrong with it would not be noticed here")
}

// SpecConflict: a name that is defined twice is not defined at all.
func SpecConflict() Kind {
	return blocking(kind("CDI006", Error, "a CDI spec of another owner defines the same device",
		"remove the file: a CDI device that two files define resolves to nothing"))
}

// SpecUnwritten: nothing resolves the device.
func SpecUnwritten() Kind {
	return blocking(kind("CDI014", Error, "the CDI spec could not be brought up to date",
		"make the CDI directory writable for the plugin, with room on its file system; if the directory was removed and made again on the host, restart the pod, which still holds the old one"))
}

// Contested: somebody else advertises the resource.
func Contested() Kind {
	return blocking(kind("PLG007", Error, "kubelet believes another device list: another plugin advertises this resource on the node",
		"remove the other plugin from this node"))
}

// HeldElsewhere: another of this project's programs offers the resource, or the same hardware.
func HeldElsewhere() Kind {
	return blocking(kind("PLG018", Warning, "another agent offers this resource on the node",
		"remove one of the two from this node; this one takes over as soon as the other has gone"))
}

// InfoUnwritten: a CNI plugin would not know the device.
func InfoUnwritten() Kind {
	return blocking(kind("PLG019", Error, "what network plugins are told of devices cannot be written",
		"make the directory of device-info files writable for the plugin, with room on its file system; until then every allocation of such a device is refused"))
}

// NotRegistered: kubelet does not know the resource (yet).
func NotRegistered() Kind {
	return blocking(kind("PLG003", Warning, "the resource is not registered with kubelet",
		"look whether kubelet runs; registration is tried until it succeeds; if the device plugin directory was removed and made again, restart the pod, which still holds the old one"))
}

// What is wrong with a configuration (family CFG).

// ConfigUnusable: the rules stay those of the last good one.
func ConfigUnusable() Kind {
	return blocking(kind("CFG001", Error, "the configuration cannot be used; what was declared before stands",
		"mend what is named, each with its place; the file is read again as soon as it changes"))
}

// ConfigGone: a file that was read is not there any more.
func ConfigGone() Kind {
	return blocking(kind("CFG018", Error, "a configuration file that was in use has gone; what it declares stands",
		"put the file back; to declare nothing, let it have an empty list; to run without it, restart the plugin"))
}

// Catalogue lists every kind, by ID.
func Catalogue() []Kind {
	all := slices.Concat([]Kind{
		SpecRejected(), SpecTooNew(), SpecConflict(), SpecUnwritten(), SpecUnexamined(),
		ConfigUnusable(), Overlap(), NoShares(), Shadowed(), NothingSelected(), SharedAndWhole(), ConfigGone(),
		DriverUnregistered(), Plugged(), RecordDamaged(), StillAllocatable(), TypeExcluded(), NodeUnread(), KubeletSilent(),
		HeldByClaim(), RecordsUnread(),
		NoIOMMUGroup(), NotViable(), HostInUse(), RDMAIncomplete(), NoCdev(), NoCdevNumber(), NoIOMMUMode(), VirtualFunction(), NotPCI(), JunkName(),
		NotCharDevice(), OtherNumber(), NotYet(), HasVFs(), WideDomain(), Unreadable(), Gone(), StaleMount(), Unlisted(), ChangedClass(),
		NoDriver(), NodeMissing(), Unseen(), ReplacedByVFs(), LinksUnknown(), Deselected(), HeldAs(), NotSelected(), NoRDMA(), NotDealt(), Claimed(),
		SharesGroup(), ComesWith(),
		NotRegistered(), Contested(), HeldElsewhere(), InfoUnwritten(), LockUnusable(),
	}, nameKinds(), networkKinds(), configKinds(), podKinds(), pluginKinds(), nodeKinds(), evidenceKinds(),
		claimKinds(), boundaryKinds(), specKinds(), kubeletKinds(), preflightKinds())
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.ID, b.ID) })
	return all
}
