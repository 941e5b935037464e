package finding

// What claims, device classes and resource slices say (family DRA). Said by kubectl device check.

// NothingPublished: to the scheduler the node has no device.
func NothingPublished() Kind {
	return kind("DRA002", Error, "a DRA driver runs on a node and has published nothing there",
		"look at the log of the driver on the node, and whether kubelet knows it")
}

// ClassMissing: the scheduler does not look further.
func ClassMissing() Kind {
	return kind("DRA003", Error, "a claim names a device class that does not exist",
		"correct the name, or make the class")
}

// SelectsNothing: whatever is free, nothing fits.
func SelectsNothing() Kind {
	return kind("DRA004", Warning, "the selectors of a claim match no device that is published",
		"compare the selectors with the attributes in the ResourceSlices")
}

// ClaimPending: the pod does not start without it.
func ClaimPending() Kind {
	return kind("DRA005", Note, "a pod waits for its claim",
		"look at what the scheduler says of the pod; kubectl device explain claim says how far the claim has come")
}

// ClassesContend: only one of them is used.
func ClassesContend() Kind {
	return kind("DRA007", Warning, "two device classes stand for one extended resource",
		"keep the name in one class, and change that class instead of making another one")
}

// ServedBoth: the scheduler decides node by node.
func ServedBoth() Kind {
	return kind("DRA008", Note, "a resource comes from a device plugin on some nodes, and from claims on others",
		"nothing, while nodes are being migrated")
}

// PoolIncomplete: the scheduler does not use it.
func PoolIncomplete() Kind {
	return kind("DRA009", Error, "a pool of devices lacks some of its slices",
		"look whether the driver still publishes; restart it if nothing changes")
}

// ReservedForNobody: nobody else gets the devices.
func ReservedForNobody() Kind {
	return kind("DRA010", Warning, "a claim is reserved for a pod that has gone or has ended",
		"look whether the claim controller runs; delete the claim if nobody needs it any more")
}

// CannotEnd: kubelet waits until the driver has taken the devices back.
func CannotEnd() Kind {
	return kind("DRA011", Warning, "a pod is to end, and the driver of its claim is not on its node",
		"bring the driver back to the node; to remove finalizers leaves the devices as they are")
}

// ClaimMissing: the pod is not started before it is there.
func ClaimMissing() Kind {
	return kind("DRA012", Error, "a pod names a claim or template that does not exist",
		"correct the name, or make it in the namespace of the pod")
}

// WithoutAddress: whether both ways hand out one device cannot be told.
func WithoutAddress() Kind {
	return kind("DRA013", Note, "a driver does not say which PCI functions its devices are, on a node that has a device plugin",
		"make sure that the two do not have the same hardware")
}

// ParametersRefused: the driver prepares no claim with them.
func ParametersRefused() Kind {
	return kind("DRA022", Error, "the parameters of a claim or device class are not what the driver takes",
		"correct the parameters: vfioNodes is cdev or group, and there is no other field")
}

// SelectorRefused: nothing is known of what it takes.
func SelectorRefused() Kind {
	return kind("DRA023", Error, "a selector of a claim or device class is no expression that Kubernetes takes",
		"correct the expression")
}

// AllottedUnpublished: what no driver publishes cannot be made ready for a pod.
func AllottedUnpublished() Kind {
	return kind("DRA024", Warning, "a claim has a device that no ResourceSlice has",
		"look at the log of the driver for why it does not publish the device; pods get another one with a new claim")
}

// PublishedAbsent: a pod that gets it does not start.
func PublishedAbsent() Kind {
	return kind("DRA025", Warning, "a driver publishes a device that its node does not have",
		"look whether the driver runs on the node, and capture the node again if the device has just come")
}

// PublishedTwice: the scheduler takes them for two devices.
func PublishedTwice() Kind {
	return kind("DRA026", Error, "two drivers publish one device",
		"keep one of the two drivers off the node, or tell it not to offer the device")
}

// RequestMissing: the API takes a pod that names one, and its container starts without a device.
func RequestMissing() Kind {
	return kind("DRA027", Error, "a request is named that the claim does not have",
		"name a request as the claim's spec does, or leave it out to mean all of them")
}

func claimKinds() []Kind {
	return []Kind{
		NothingPublished(), ClassMissing(), SelectsNothing(), ClaimPending(), ClassesContend(), ServedBoth(), PoolIncomplete(),
		ReservedForNobody(), CannotEnd(), ClaimMissing(), WithoutAddress(), ParametersRefused(), SelectorRefused(),
		AllottedUnpublished(), PublishedAbsent(), PublishedTwice(), RequestMissing(),
	}
}
