package finding

// What a node or a cluster lacks for the way by which devices are handed out (family PRE). Said by
// kubectl device preflight.

// KubeletTooOld: no setting helps.
func KubeletTooOld() Kind {
	return kind("PRE001", Error, "a node's kubelet is too old for this way to devices",
		"update the node, or leave it out of the pool")
}

// GateOff: the version has the feature, and it is switched off.
func GateOff() Kind {
	return kind("PRE002", Error, "a feature gate that this way to devices needs is off",
		"switch it on in kubelet's configuration and restart kubelet, or update the node to a version that has it on")
}

// ClaimsNotServed: there is no place for slices and claims.
func ClaimsNotServed() Kind {
	return kind("PRE003", Error, "the API server does not serve the objects of DRA as the driver writes them",
		"update the control plane to 1.34 or later")
}

// NameTooNew: the API server drops the field.
func NameTooNew() Kind {
	return kind("PRE004", Warning,
		"a device class has an extended resource name, and a node's version does not know that by default",
		"update to 1.36 or later, switch DRAExtendedResource on everywhere, or use claims")
}

// RuntimeWithoutCDI: containers start without the devices.
func RuntimeWithoutCDI() Kind {
	return kind("PRE005", Error, "the container runtime gives containers no CDI devices",
		"switch enable_cdi on in the settings of containerd 1.7, or update the runtime")
}

// SpecsElsewhere: agents write specs to /var/run/cdi.
func SpecsElsewhere() Kind {
	return kind("PRE006", Error, "the container runtime does not look where generated CDI specs are",
		"add /var/run/cdi to its directories, or leave the setting out")
}

// NoKataClass: pods have no way to ask for a VM.
func NoKataClass() Kind {
	return kind("PRE007", Error, "no RuntimeClass starts Kata VMs on the nodes",
		"make the RuntimeClass that your Kata installation comes with, and look at its nodeSelector")
}

// HandlerUnknown: the sandbox of the pod cannot be made.
func HandlerUnknown() Kind {
	return kind("PRE008", Error, "the container runtime of a node does not know the handler of a RuntimeClass",
		"install Kata on the node, or keep the class away from it with its nodeSelector")
}

// NoColdPlug: a device that is to be there when the VM starts is not.
func NoColdPlug() Kind {
	return kind("PRE009", Error, "Kata plugs no device before the VM starts",
		"set cold_plug_vfio to root-port and hot_plug_vfio to no-port in the configuration of the hypervisor")
}

// NobodyAsked: the shim then looks for annotations that nobody writes.
func NobodyAsked() Kind {
	return kind("PRE010", Error, "Kata is not told where to ask kubelet for the devices of a pod",
		"set pod_resource_api_sock in the table runtime of Kata's configuration to pod-resources/kubelet.sock below "+
			"kubelet's directory, usually /var/lib/kubelet")
}

// FewPorts: each device that is plugged before the start takes one.
func FewPorts() Kind {
	return kind("PRE011", Warning, "a VM has fewer PCIe root ports than a pod may have devices",
		"raise pcie_root_port to the number of devices of a node")
}

// BothOnNode: one hardware would be given out twice.
func BothOnNode() Kind {
	return kind("PRE012", Error, "a device plugin and a DRA driver of the same devices may run on one node",
		"keep them apart by the label node-restriction.kubernetes.io/passthrough-mode, as their manifests do")
}

// NoDigest: the same name may be another program tomorrow.
func NoDigest() Kind {
	return kind("PRE013", Warning, "the image of an agent is not named by its digest",
		"name it by its digest in production")
}

// Evictable: without the agent pods get no devices.
func Evictable() Kind {
	return kind("PRE014", Warning, "the pods of an agent have no priority over others",
		"set priorityClassName to system-node-critical")
}

// AgentKeptAway: a node with devices is without its agent.
func AgentKeptAway() Kind {
	return kind("PRE015", Warning, "an agent does not run on a node because of its taint",
		"tolerate the taints of nodes with devices")
}

// NotScraped: nobody will see that something is wrong.
func NotScraped() Kind {
	return kind("PRE016", Warning, "nothing scrapes the metrics of an agent",
		"make a PodMonitor, or tell your Prometheus in another way")
}

// ReachedByAll: what has a port need not be reached by everybody.
func ReachedByAll() Kind {
	return kind("PRE017", Warning, "no NetworkPolicy says who may reach an agent with a port",
		"apply the NetworkPolicy of its manifests; on the network of its node, give it --web.config.file")
}

// PolicyMissing: a node that was taken over could speak for others.
func PolicyMissing() Kind {
	return kind("PRE018", Warning, "an admission policy of the DRA driver is not in force",
		"apply the driver's admission.yaml, with the bindings")
}

// NotUpdated: a new version waits until somebody deletes pods.
func NotUpdated() Kind {
	return kind("PRE019", Warning, "the pods of an agent are not replaced when its version changes",
		"use the update strategy RollingUpdate")
}

// InventoriesDiffer: a migration would change what a node has.
func InventoriesDiffer() Kind {
	return kind("PRE020", Warning, "the device plugin and the DRA driver do not have the same devices of a node",
		"look at both with kubectl device inventory on the node, and at the driver's --types")
}

// SettingsUnreadable: the program does not start with them, or not as it is meant.
func SettingsUnreadable() Kind {
	return kind("PRE021", Error, "a settings file of a node cannot be read",
		"correct the file and restart the program that reads it")
}

// NameUsed: it works as long as the name is there.
func NameUsed() Kind {
	return kind("PRE022", Note, "an object depends on the name of an extended resource",
		"look at it before you migrate")
}

// ClaimsNotTaken: the claim is in order, and the VM starts without its devices.
func ClaimsNotTaken() Kind {
	return kind("PRE023", Error, "the Kata of a node does not take devices of claims",
		"hand devices to Kata by the device plugin; if you built Kata with kata-containers/kata-containers#13323 (Go) or "+
			"#13420 (Rust), accept the finding with --ignore")
}

// NotAligned: memory and processors of the VM may be far from its devices.
func NotAligned() Kind {
	return kind("PRE024", Warning, "kubelet does not align devices with each other and with processors",
		"set topologyManagerPolicy to best-effort, restricted or single-numa-node, or accept the finding where pods "+
			"take whole nodes")
}

// OfferedUnresolved: the container does not start, or gets another device.
func OfferedUnresolved() Kind {
	return kind("PRE025", Error, "kubelet offers a device whose CDI name does not lead to it",
		"look at the plugin's log and at the CDI directory: the plugin writes the spec before it offers the device")
}

// NodeNotReady: the scheduler leaves it out.
func NodeNotReady() Kind {
	return kind("PRE026", Warning, "a node is not ready",
		"look at the node's conditions and at its kubelet, or leave the node out of the input if it is not to have devices")
}

// AgentNotRunning: nobody hands the devices out.
func AgentNotRunning() Kind {
	return kind("PRE027", Warning, "an agent does not run where it is to run",
		"look at its pods and their events, and at its node selector and affinity")
}

// ClassesTakeNothing: a request of a claim names a class.
func ClassesTakeNothing() Kind {
	return kind("PRE028", Warning, "no device class takes devices that the driver has published",
		"correct the selectors of the classes, or apply those of the driver's manifests")
}

func preflightKinds() []Kind {
	return []Kind{
		KubeletTooOld(), GateOff(), ClaimsNotServed(), NameTooNew(), RuntimeWithoutCDI(), SpecsElsewhere(), NoKataClass(),
		HandlerUnknown(), NoColdPlug(), NobodyAsked(), FewPorts(), BothOnNode(), NoDigest(), Evictable(), AgentKeptAway(),
		NotScraped(), ReachedByAll(), PolicyMissing(), NotUpdated(), InventoriesDiffer(), SettingsUnreadable(),
		NameUsed(), ClaimsNotTaken(), NotAligned(), OfferedUnresolved(), NodeNotReady(), AgentNotRunning(), ClassesTakeNothing(),
	}
}
