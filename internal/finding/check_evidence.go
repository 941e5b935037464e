package finding

// What the input does not show (family EVD). Said by kubectl device check.

// InputNotUsed: with its braces it says nothing certain.
func InputNotUsed() Kind {
	return kind("EVD001", Note, "an input is the source of a template",
		"render it first, with helm template or kustomize build")
}

// FarApart: what was seen at one time proves nothing of another.
func FarApart() Kind {
	return kind("EVD002", Warning, "the inputs were taken at different times",
		"take all of them again, at once")
}

// EventsGone: events are kept for an hour.
func EventsGone() Kind {
	return kind("EVD003", Note, "the events of a pod that waits are not in the input",
		"look at the pod with kubectl describe soon after it was made")
}

// ReadMeanwhile: what belongs together was not seen at one moment.
func ReadMeanwhile() Kind {
	return kind("EVD004", Note, "something changed on the node while it was captured",
		"capture the node again once nothing is being bound, and compare")
}

// VersionLacks: a check that finds nothing there proves nothing.
func VersionLacks() Kind {
	return kind("EVD005", Note, "the version of kubelet does not say what a check needs",
		"nothing, or update the node")
}

// NamesReplaced: without the salt nobody knows which word stands for which name.
func NamesReplaced() Kind {
	return kind("EVD006", Note, "a captured node has other words in the place of names",
		"take it with kubectl device snapshot --clear-names to have it compared with the objects of the cluster")
}

// OfNoNode: what kubelet of another cluster says proves nothing of this one.
func OfNoNode() Kind {
	return kind("EVD007", Warning, "a captured node is no node of the input",
		"add the node's object, or give the label kubernetes.io/hostname of the node the name that its host has")
}

// CapturedTwice: what two captures say of one node need not have been so at any time.
func CapturedTwice() Kind {
	return kind("EVD008", Note, "a node was captured more than once",
		"leave out all captures of the node but the newest")
}

// AcceptsNothing: who misspells an ID believes that the finding is looked at.
func AcceptsNothing() Kind {
	return kind("EVD009", Warning, "an annotation accepts a finding that there is none of",
		"write IDs as findings show them, with commas between them, for example NAM004")
}

func evidenceKinds() []Kind {
	return []Kind{
		InputNotUsed(), FarApart(), EventsGone(), ReadMeanwhile(), VersionLacks(), NamesReplaced(), OfNoNode(), CapturedTwice(),
		AcceptsNothing(),
	}
}
