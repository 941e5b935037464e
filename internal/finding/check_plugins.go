package finding

// The workloads that run device plugins (family DSP). Said by kubectl device check.

// NoNodeWanted: no node has its resources.
func NoNodeWanted() Kind {
	return kind("DSP001", Error, "the plugin is to run on no node",
		"correct its node selector or affinity, or label the nodes")
}

// TaintNotTolerated: the node does not get the plugin back.
func TaintNotTolerated() Kind {
	return kind("DSP002", Error, "the plugin does not tolerate the taint of a node with devices",
		"add a toleration to the DaemonSet")
}

// HostPathMissing: it cannot register, or finds no device.
func HostPathMissing() Kind {
	return kind("DSP003", Error, "the plugin does not mount a directory of the host that it needs",
		"mount it")
}

// HostPathElsewhere: it registers with nobody.
func HostPathElsewhere() Kind {
	return kind("DSP004", Error, "the plugin mounts a directory that is not kubelet's",
		"mount /var/lib/kubelet/device-plugins, and plugins_registry and pod-resources below the root directory of kubelet")
}

// PluginNotReady: the resource comes and goes.
func PluginNotReady() Kind {
	return kind("DSP005", Warning, "a pod of a device plugin is not ready, or has been restarted",
		"look at its log")
}

// PrivilegeMissing: it may not see its devices.
func PrivilegeMissing() Kind {
	return kind("DSP006", Warning, "a plugin lacks a privilege or runtime class that it is made for",
		"set what the manifest of the plugin sets")
}

// CDINotMounted: no runtime finds its devices.
func CDINotMounted() Kind {
	return kind("DSP008", Error, "a plugin that writes CDI specs cannot write them to the host",
		"mount the CDI directory of the host, writable")
}

// ImageTooOld: where it is older, the flag stops the plugin, and a selector that it does not know selects everything.
func ImageTooOld() Kind {
	return kind("DSP009", Note, "the image of a plugin may be older than what it is told to use",
		"look whether the plugin of that image knows the feature: use a newer one, or leave the feature out")
}

// SurgeAllowed: the old one takes the socket of the new one along.
func SurgeAllowed() Kind {
	return kind("DSP010", Warning, "two instances of a plugin may run on a node at once",
		"set maxSurge to 0")
}

// FlagUnknown: the program says so, and ends.
func FlagUnknown() Kind {
	return kind("DSP011", Error, "an agent is given an argument that it does not take",
		"correct the argument; the program lists its flags with --help")
}

func pluginKinds() []Kind {
	return []Kind{
		NoNodeWanted(), TaintNotTolerated(), HostPathMissing(), HostPathElsewhere(), PluginNotReady(),
		PrivilegeMissing(), CDINotMounted(), ImageTooOld(), SurgeAllowed(), FlagUnknown(),
	}
}
