package finding

// What pods ask for, and what became of it (family POD). Said by kubectl device check.

// LimitMissing: the API server refuses the pod.
func LimitMissing() Kind {
	return kind("POD001", Error, "a container requests a device without an equal limit",
		"write the same number under limits; limits alone are enough")
}

// NotWhole: the API server refuses the pod.
func NotWhole() Kind {
	return kind("POD002", Error, "the number of devices is not a whole number",
		"write a whole number")
}

// InitOnly: the device is passed on to later containers only if they request it.
func InitOnly() Kind {
	return kind("POD003", Note, "only an init container requests a device",
		"request it in the container that uses it, too")
}

// InjectedElsewhere: the others do not get it.
func InjectedElsewhere() Kind {
	return kind("POD004", Warning, "the injector gives a network's device to the first container",
		"put the container that uses the device first, or write the requests by hand")
}

// SchedulerBypassed: kubelet starts it without the device.
func SchedulerBypassed() Kind {
	return kind("POD005", Warning, "a pod is put on a node that does not have its resource",
		"let the scheduler choose, or put it on a node that has the resource")
}

// PrivilegedAnyway: it sees all devices of the host.
func PrivilegedAnyway() Kind {
	return kind("POD006", Note, "a privileged container requests a device",
		"drop privileged, if the device is all that it is for")
}

// Rejected: it does not recover by itself.
func Rejected() Kind {
	return kind("POD008", Error, "kubelet has refused the pod",
		"delete the pod, and let a controller make a new one; the finding says what kubelet found")
}

// UnhealthyInPod: the container goes on with it.
func UnhealthyInPod() Kind {
	return kind("POD009", Warning, "a container has a device that is not healthy",
		"look at the plugin on the node for the reason")
}

// WaitsForScheduler: the finding repeats what the scheduler says.
func WaitsForScheduler() Kind {
	return kind("POD010", Note, "a pod waits for the scheduler",
		"look at the other findings about the pod")
}

// NodesExcluded: the scheduler finds no node.
func NodesExcluded() Kind {
	return kind("POD011", Error, "the pod may not run on the nodes that have the resource",
		"change the selector, the affinity or the tolerations of the pod")
}

// AllInUse: there is none left.
func AllInUse() Kind {
	return kind("POD012", Note, "pods have all devices that a pod waits for",
		"wait, or end one of the pods that are named")
}

// MoreThanANode: the scheduler finds no node.
func MoreThanANode() Kind {
	return kind("POD013", Error, "a pod requests more devices than any node has",
		"request fewer, or in several pods")
}

// SeveralShares: two shares may be of one device.
func SeveralShares() Kind {
	return kind("POD014", Warning, "a pod requests several shares of a device",
		"request one share, or whole devices")
}

// QuantityZero: kubelet refuses the pod where the resource is registered and no device is healthy.
func QuantityZero() Kind {
	return kind("POD015", Warning, "a container wants none of a device",
		"remove the line")
}

// WithoutCDI: the container does not start.
func WithoutCDI() Kind {
	return kind("POD016", Error, "the container runtime does not find the CDI device of a pod",
		"look whether the CDI spec is on the node, and whether the runtime looks there: kubectl device snapshot shows both")
}

// Gated: the scheduler leaves the pod alone.
func Gated() Kind {
	return kind("POD017", Note, "a pod has a scheduling gate",
		"have whoever set the gate remove it, such as a queue that has not admitted the pod yet")
}

// LargerThanANode: the scheduler finds no node.
func LargerThanANode() Kind {
	return kind("POD018", Error, "a pod requests more CPU, memory or storage than any node with its devices has",
		"request less, or in several pods")
}

func podKinds() []Kind {
	return []Kind{
		LimitMissing(), NotWhole(), InitOnly(), InjectedElsewhere(), SchedulerBypassed(), PrivilegedAnyway(),
		Rejected(), UnhealthyInPod(), WaitsForScheduler(), NodesExcluded(), AllInUse(), MoreThanANode(),
		SeveralShares(), QuantityZero(), WithoutCDI(), Gated(), LargerThanANode(),
	}
}
