package finding

// What a node's CDI directories hold (family CDI). Said by kubectl device check.

// SpecsUnlisted: a runtime finds no device there.
func SpecsUnlisted() Kind {
	return kind("CDI001", Error, "a CDI directory cannot be used",
		"make it a directory that root may read; a runtime with an old library finds no device at all until then")
}

// SpecsLoose: who writes a spec decides what containers mount and run.
func SpecsLoose() Kind {
	return kind("CDI002", Warning, "others than root may change CDI specs",
		"give the file or directory to root, and let nobody else write to it")
}

// SpecPassedOver: by its name, or because it is further down.
func SpecPassedOver() Kind {
	return kind("CDI003", Warning, "a file in a CDI directory is passed over",
		"name it .json or .yaml, directly in the directory; remove it if it is left over")
}

// SpecShadowed: which is what the second directory is for.
func SpecShadowed() Kind {
	return kind("CDI007", Note, "a CDI device is defined in both directories",
		"nothing, if the one in the later directory is meant")
}

// Unresolvable: the container does not start.
func Unresolvable() Kind {
	return kind("CDI008", Error, "a container is given a CDI device that nothing defines",
		"look at the specs of that kind, and at what their writer says")
}

// SpecStale: the container does not start, or gets another device.
func SpecStale() Kind {
	return kind("CDI009", Error, "a CDI spec names a device node or file that the host does not have",
		"have the spec written anew by its owner")
}

// NodeShared: two containers may get the same hardware under two names.
func NodeShared() Kind {
	return kind("CDI010", Note, "two kinds of CDI devices have one device node",
		"make sure that not both of them are handed out")
}

// CDIOff: the container starts without its device.
func CDIOff() Kind {
	return kind("CDI011", Error, "the container runtime does not use the CDI specs of the node",
		"set enable_cdi in the runtime's settings, and have the directory in cdi_spec_dirs")
}

// SpecContested: whoever starts last decides what is there.
func SpecContested() Kind {
	return kind("CDI012", Warning, "one program removes or replaces the CDI specs of another",
		"let only one of the two write CDI specs on a node: switch CDI off in the other, or keep them on different nodes")
}

// SpecOld: what is below /etc stays over a reboot, and numbers of devices do not.
func SpecOld() Kind {
	return kind("CDI013", Note, "a CDI spec is older than the last start of the node",
		"have the spec written anew by its owner when the node starts, or below /var/run/cdi")
}

// SpecPrivate: who is not root sees no device of it.
func SpecPrivate() Kind {
	return kind("CDI016", Note, "a CDI spec cannot be read by others than its owner",
		"nothing, if every runtime of the node runs as root; else give the file the mode 0644")
}

func specKinds() []Kind {
	return []Kind{
		SpecsUnlisted(), SpecsLoose(), SpecPassedOver(), SpecShadowed(), Unresolvable(), SpecStale(), NodeShared(), CDIOff(),
		SpecContested(), SpecOld(), SpecPrivate(),
	}
}
