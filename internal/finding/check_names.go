package finding

// How names agree: advertised by a plugin, named by a network, requested by a pod (family NAM).
// Said by kubectl device check.

// NameNotAdvertised: the scheduler finds no node for it.
func NameNotAdvertised() Kind {
	return kind("NAM001", Error, "a pod requests a resource that nothing advertises",
		"correct the name, or deploy the plugin that advertises it")
}

// NetworkNotAdvertised: a pod that attaches it can have no device.
func NetworkNotAdvertised() Kind {
	return kind("NAM002", Error, "a network names a resource that nothing advertises",
		"correct the name in the network, or deploy the plugin that advertises it")
}

// OtherPrefix: the prefix is a part of the name.
func OtherPrefix() Kind {
	return kind("NAM003", Error, "the name is advertised with another prefix",
		"write the prefix that is in effect, whose origin the finding names")
}

// AttachedNotRequested: Multus looks for the device, finds none, and says nothing.
func AttachedNotRequested() Kind {
	return kind("NAM004", Error, "a pod attaches a network whose resource it does not request",
		"request the resource in requests and limits, as many as there are attachments")
}

// RequestedNotAttached: the device stays where it is, and the pod has no interface of it.
func RequestedNotAttached() Kind {
	return kind("NAM005", Note, "a pod requests a network's resource and attaches no such network",
		"attach the network, or nothing, if the program uses the device itself")
}

// TooFewRequested: the last attachments get no device.
func TooFewRequested() Kind {
	return kind("NAM006", Error, "a pod has more attachments of a resource than it requests",
		"request one for each attachment")
}

// TooManyRequested: the others stay idle.
func TooManyRequested() Kind {
	return kind("NAM007", Note, "a pod requests more of a resource than it attaches",
		"nothing, if the program uses the others itself")
}

// OtherSpelling: names are compared byte by byte.
func OtherSpelling() Kind {
	return kind("NAM008", Error, "the name differs from an advertised one in case, hyphens or underscores only",
		"write the name exactly as it is advertised")
}

// NoSlash: the API server refuses the pod.
func NoSlash() Kind {
	return kind("NAM009", Error, "the name of a device resource has no slash",
		"write the whole name, with its prefix")
}

// NameRefused: nothing can advertise it.
func NameRefused() Kind {
	return kind("NAM010", Error, "the API server or kubelet refuses the name",
		"choose a name that both accept: a DNS name in lower case, a slash, and up to 63 letters, digits and - _ . that "+
			"begin and end with a letter or digit")
}

// TwoProducers: kubelet listens to both, and gives the work to one.
func TwoProducers() Kind {
	return kind("NAM011", Error, "two producers advertise one name",
		"rename one of the two, or keep them on different nodes")
}

// PrefixOrigin: it is shown with -v only.
func PrefixOrigin() Kind {
	return kind("NAM012", Note, "where a resource's prefix comes from",
		"nothing: it is an explanation")
}

// QuotaNotAdvertised: it limits nothing.
func QuotaNotAdvertised() Kind {
	return kind("NAM013", Note, "a quota or limit range names a resource that nothing advertises",
		"correct the name, or remove the line")
}

// SliceSpelling: Multus finds a claim's device by that name.
func SliceSpelling() Kind {
	return kind("NAM014", Error, "a ResourceSlice or DeviceClass spells the name in another way than the network",
		"write the same name in both")
}

// SharedVariable: a container with both would see the devices of one.
func SharedVariable() Kind {
	return kind("NAM015", Warning, "two resources have one environment variable",
		"rename one of the two")
}

// OrderNotFixed: devices of a resource are a set.
func OrderNotFixed() Kind {
	return kind("NAM016", Note, "several networks of a pod share one resource",
		"make a resource for each network, if it matters which device belongs to which")
}

func nameKinds() []Kind {
	return []Kind{
		NameNotAdvertised(), NetworkNotAdvertised(), OtherPrefix(), AttachedNotRequested(), RequestedNotAttached(),
		TooFewRequested(), TooManyRequested(), OtherSpelling(), NoSlash(), NameRefused(), TwoProducers(),
		PrefixOrigin(), QuotaNotAdvertised(), SliceSpelling(), SharedVariable(), OrderNotFixed(),
	}
}
