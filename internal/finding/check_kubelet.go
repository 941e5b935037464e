package finding

// What kubelet's directories and record on a node say (families PLG, TOP, MAP). Said by kubectl
// device check.

// PluginDirWrong: no plugin can register.
func PluginDirWrong() Kind {
	return kind("PLG001", Error, "kubelet's directory of device plugins is missing, or others may write to it",
		"let kubelet make it anew: give it to root, and let nobody else write to it")
}

// KubeletDeaf: nobody registers.
func KubeletDeaf() Kind {
	return kind("PLG002", Error, "kubelet's registration socket is missing or refuses connections",
		"look at kubelet's log, and restart kubelet")
}

// SocketDead: its program has ended.
func SocketDead() Kind {
	return kind("PLG004", Warning, "a socket of a plugin refuses connections",
		"restart the plugin, or remove the socket if there is no such plugin any more")
}

// SocketUnknown: a plugin that serves has not registered.
func SocketUnknown() Kind {
	return kind("PLG005", Warning, "more plugins serve than kubelet has resources registered",
		"look at the log of the plugins for the one that is not registered")
}

// SocketPathLong: bind(2) refuses it.
func SocketPathLong() Kind {
	return kind("PLG006", Error, "the path of a plugin's socket is too long",
		"use a shorter resource name or prefix: a path has at most 107 bytes")
}

// Zombie: the next pod with the resource fails.
func Zombie() Kind {
	return kind("PLG008", Error, "kubelet offers devices for which no plugin serves",
		"start the plugin again; if its resource stays as it is, restart kubelet")
}

// LabelWrong: the policy of SELinux says nothing of a program that needs such a file.
func LabelWrong() Kind {
	return kind("PLG010", Warning, "a file of kubelet, a plugin or CDI has the SELinux label of another place",
		"give it the label of its directory with restorecon, and copy files there instead of moving them")
}

// TwoWays: kubelet takes whichever registers last.
func TwoWays() Kind {
	return kind("PLG015", Warning, "one plugin's socket serves in both of kubelet's directories",
		"run one copy of the plugin on a node, and remove what an earlier one has left")
}

// ListLarge: kubelet's client refuses a larger message.
func ListLarge() Kind {
	return kind("PLG017", Warning, "the device list of a resource is near the size that kubelet takes, 4 MiB",
		"advertise fewer devices or shares, or split them into several resources")
}

// RecordUnreadable: after a restart kubelet begins without it.
func RecordUnreadable() Kind {
	return kind("PLG012", Error, "kubelet's record of devices cannot be read",
		"end the pods with devices before kubelet is restarted: it would hand out their devices again")
}

// RecordStale: kubelet looks for that when it needs a device.
func RecordStale() Kind {
	return kind("PLG013", Note, "kubelet's record has devices of a pod that has gone",
		"nothing, as long as devices are free: kubelet takes them back when it needs one")
}

// HeldUnhealthy: after a restart the pod is refused.
func HeldUnhealthy() Kind {
	return kind("PLG014", Warning, "a pod has a device that is not healthy any more",
		"look at the plugin for the reason; the pod keeps the device until kubelet admits it anew")
}

// NoTopology: kubelet does not align it with anything.
func NoTopology() Kind {
	return kind("TOP001", Note, "the devices of a resource have no NUMA node",
		"nothing, if alignment is not wanted; otherwise look at what the plugin tells of its devices")
}

// NodeUnknown: with a strict policy the pod is refused.
func NodeUnknown() Kind {
	return kind("TOP002", Warning, "a plugin advertises a NUMA node that the host does not have",
		"correct the plugin: a node that is not known is left out")
}

// TopologyMixed: a request for several fails with a strict policy.
func TopologyMixed() Kind {
	return kind("TOP003", Warning, "some devices of a resource have a NUMA node, and some have none",
		"let the resource have devices of one sort only")
}

// NodeUntold: the firmware does not say it.
func NodeUntold() Kind {
	return kind("TOP004", Note, "the host does not know the NUMA node of a function",
		"look for an update of the firmware, which has to tell it (ACPI _PXM)")
}

// NodeDiffers: what is aligned is not close.
func NodeDiffers() Kind {
	return kind("TOP007", Warning, "a device is advertised on another NUMA node than it is",
		"correct the plugin, or restart it if the hardware was moved")
}

// TooManyNUMA: the topology manager, and with it kubelet, does not start.
func TooManyNUMA() Kind {
	return kind("TOP005", Error, "the node has more NUMA nodes than kubelet's topology manager works with",
		"set the option max-allowable-numa-nodes of the topology manager, or its policy to none")
}

// NUMAExhausted: enough devices are free, and not together.
func NUMAExhausted() Kind {
	return kind("TOP006", Error, "a pod was refused because no NUMA node has enough free devices",
		"delete the pod, and end another one on the node first; request fewer devices, or use a policy that is not so strict")
}

// DeviceMissing: it runs without.
func DeviceMissing() Kind {
	return kind("MAP001", Error, "a pod requests a device, and kubelet has given it none",
		"delete the pod, so that it is made again once the plugin is registered")
}

// TwoOwners: each of them thinks that it is alone.
func TwoOwners() Kind {
	return kind("MAP002", Error, "two pods have one device",
		"end one of the two, and look which of the two ways of handing out devices is not meant for the node")
}

// TwoClaims: each of them thinks that it is alone.
func TwoClaims() Kind {
	return kind("MAP006", Error, "two claims have one device",
		"end the pods of one of the two, and delete its claim")
}

// OtherThanAllocated: the scheduler may give the device to others.
func OtherThanAllocated() Kind {
	return kind("MAP007", Warning, "a pod has another device than its claim",
		"take the objects and the capture of one moment; if it stays so, end the pod, and look at the log of the driver")
}

// RecordDiffers: after a restart of kubelet the record counts.
func RecordDiffers() Kind {
	return kind("MAP003", Warning, "kubelet says that a container has a device, and its record does not",
		"take another capture; if it stays so, end the pod before kubelet is restarted")
}

// SameName: kubelet does not tell them apart.
func SameName() Kind {
	return kind("MAP004", Note, "two pods of one name are on a node, so that which of them has a device is not certain",
		"take the objects of one moment only")
}

// AnswerSlow: network plugins ask the same, for every pod.
func AnswerSlow() Kind {
	return kind("MAP005", Warning, "kubelet is slow to say who has which device, or does not say it",
		"look at who else asks: kubelet answers a hundred questions a second, and no more")
}

func kubeletKinds() []Kind {
	return []Kind{
		PluginDirWrong(), KubeletDeaf(), SocketDead(), SocketUnknown(), SocketPathLong(), Zombie(), RecordUnreadable(),
		LabelWrong(), TwoWays(), ListLarge(), TooManyNUMA(), NUMAExhausted(),
		RecordStale(), HeldUnhealthy(), NoTopology(), NodeUnknown(), TopologyMixed(), NodeUntold(), NodeDiffers(),
		DeviceMissing(), TwoOwners(), RecordDiffers(), SameName(), AnswerSlow(), TwoClaims(), OtherThanAllocated(),
	}
}
