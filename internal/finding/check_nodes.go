package finding

// What nodes say of devices (family NOD). Said by kubectl device check.

// NotAllAllocatable: they are not healthy.
func NotAllAllocatable() Kind {
	return kind("NOD001", Warning, "a node has devices that are not allocatable",
		"look at the plugin on the node for the reason")
}

// KeyZero: the plugin has left, or has none.
func KeyZero() Kind {
	return kind("NOD002", Warning, "a node has the key of a resource, and no device",
		"look whether the plugin runs on the node, and which devices it finds")
}

// NeverRegistered: the plugin found no device, or did not register.
func NeverRegistered() Kind {
	return kind("NOD003", Error, "no node has a resource that a configuration declares",
		"look at the log of the plugin on a node that should have it")
}

// FewerOffered: the plugin does not see them, or kubelet has not heard of them.
func FewerOffered() Kind {
	return kind("NOD004", Warning, "kubelet offers fewer devices than the node has",
		"look at the log of the plugin, and restart it if it looks at the hardware only when it starts")
}

// Overcommitted: a pod will be refused when it is admitted again.
func Overcommitted() Kind {
	return kind("NOD005", Error, "the pods of a node request more devices than are allocatable",
		"end the pods that are too many, or bring the devices back")
}

// NodeChanged: the restart of kubelet is the likely reason.
func NodeChanged() Kind {
	return kind("NOD006", Note, "a node changed its state when a pod was refused",
		"delete the pod that was refused")
}

// KeyLeftOver: a rename leaves it there.
func KeyLeftOver() Kind {
	return kind("NOD007", Note, "a node has the key of a resource that nothing makes any more",
		"nothing; a key with 0 does no harm")
}

func nodeKinds() []Kind {
	return []Kind{
		NotAllAllocatable(), KeyZero(), NeverRegistered(), FewerOffered(), Overcommitted(), NodeChanged(), KeyLeftOver(),
	}
}
