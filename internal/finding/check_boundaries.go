package finding

// Who may change what nodes hand out, and what agents may do (family SEC). Said by kubectl
// device check.

// MayWriteClasses: a class decides what a claim gets, and how it is configured.
func MayWriteClasses() Kind {
	return kind("SEC001", Warning, "others than administrators may change device classes",
		"take the verbs away from the role, or the subject from the binding")
}

// MayWriteSlices: a slice says which hardware there is, and where.
func MayWriteSlices() Kind {
	return kind("SEC002", Warning, "others than drivers may change resource slices",
		"take the verbs away from the role, or the subject from the binding")
}

// MayConfigure: a configuration decides which hardware is handed out under which name.
func MayConfigure() Kind {
	return kind("SEC003", Warning, "others than administrators may change the configuration of a device plugin",
		"take the verbs away from the role, or move the configuration into a namespace of its own")
}

// TooPrivileged: who takes over the agent has the node.
func TooPrivileged() Kind {
	return kind("SEC004", Warning, "a device agent has more privilege than it needs",
		"take it away, as the manifest of the agent does")
}

// WideHostPath: it reaches what has nothing to do with devices.
func WideHostPath() Kind {
	return kind("SEC005", Warning, "a device agent mounts more of the host than it needs",
		"mount the directories that it needs, and read-only where it does not write")
}

// FloatingImage: what runs tomorrow is decided by the registry.
func FloatingImage() Kind {
	return kind("SEC006", Note, "the image of a device agent is not pinned",
		"name the image by its digest")
}

// OpenSocket: who writes to it speaks for a plugin, or asks it.
func OpenSocket() Kind {
	return kind("SEC007", Warning, "others than root may speak to a socket of kubelet or a plugin",
		"take the permissions away from the socket, or from the directory above it")
}

// MoreRights: who takes over the agent may do all of it, on every node.
func MoreRights() Kind {
	return kind("SEC008", Warning, "the service account of a device agent may do more than the agent needs",
		"give it what the manifest of the agent gives it, and no account to an agent that does not ask the API server")
}

// TokenMounted: it is good for nothing but to be stolen.
func TokenMounted() Kind {
	return kind("SEC009", Warning, "a device agent has a token for the API server, which it does not use",
		"set automountServiceAccountToken to false in the pod's template")
}

func boundaryKinds() []Kind {
	return []Kind{
		MayWriteClasses(), MayWriteSlices(), MayConfigure(), TooPrivileged(), WideHostPath(), FloatingImage(), OpenSocket(),
		MoreRights(), TokenMounted(),
	}
}
