package finding

// What keeps a device from being handed out to a claim (family DRA).

// Plugged: two accountants would each think that they have the device.
func Plugged() Kind {
	return kind("DRA006", Error, "a device plugin offers the device, or a container still has it from one",
		"drain the node's pods that have the resource, and run the device plugin or the DRA driver on the node, not both")
}

// RecordDamaged: what a claim has is not known any more.
func RecordDamaged() Kind {
	return kind("DRA015", Error, "a claim may have the device whose record on the node cannot be read",
		"delete the claim's pod, which ends it; if there is no such claim any more, remove its file, UID.damaged.N in the driver's directory claims")
}

// StillAllocatable: the scheduler counts the node's resource before it asks for claims.
func StillAllocatable() Kind {
	return blocking(kind("DRA016", Error, "the node still has devices of a device plugin allocatable",
		"remove the device plugin from the node; kubelet then sets the number to 0 within seconds"))
}

// TypeExcluded: by the command line.
func TypeExcluded() Kind {
	return kind("DRA017", Note, "the driver is told not to offer devices of this type", "nothing, if it is meant so; else add the type to --types")
}

// NodeUnread: whether a device plugin has the node's devices is not known.
func NodeUnread() Kind {
	return blocking(kind("DRA018", Error, "the node's object could not be read from the API server, so the last answer decides what is offered",
		"look at the error: the driver's service account needs to get its node, and the API server has to be reachable"))
}

// KubeletSilent: who has which device is not known.
func KubeletSilent() Kind {
	return blocking(kind("DRA019", Error, "kubelet does not say who has which device, so its last answer decides what is offered",
		"look at the error: the directory of kubelet's pod-resources socket has to be mounted"))
}

// HeldByClaim: to the scheduler it is another device, which nobody has.
func HeldByClaim() Kind {
	return kind("DRA020", Warning, "a claim has the device's hardware under the name of another device",
		"wait until the claim's pod has ended, or give its IOMMU group back the function that has left; the device is free then")
}

// DriverUnregistered: kubelet has not found the driver's socket, or refused it.
func DriverUnregistered() Kind {
	return blocking(kind("DRA001", Warning, "the driver is not registered with kubelet",
		"wait: kubelet looks into its directory plugins_registry; if it lasts, look there for the driver's socket, and into kubelet's log"))
}

// RecordsUnread: what claims have is not known.
func RecordsUnread() Kind {
	return blocking(kind("DRA021", Error, "the records of claims cannot be read, so what they said last decides what is offered",
		"look at the error: the driver's directory below kubelet's plugins has to be mounted and readable"))
}

// LockUnusable: without the lock nobody knows who else offers the devices.
func LockUnusable() Kind {
	return blocking(kind("PLG020", Error, "the lock that keeps two agents from offering the same devices cannot be taken",
		"look at the error: the host's CDI directory has to be mounted and writable"))
}
