package finding

// Networks, and the annotations that name them (family NAD). Said by kubectl device check.

// NetworkConfigUnusable: pods that attach it do not start.
func NetworkConfigUnusable() Kind {
	return kind("NAD001", Error, "the CNI configuration of a network cannot be used",
		"mend the JSON at the place that is named")
}

// NetworkWithoutResource: no device is chosen for it.
func NetworkWithoutResource() Kind {
	return kind("NAD002", Error, "a network of a type that needs a device names no resource",
		"add the annotation k8s.v1.cni.cncf.io/resourceName with the full name of the resource")
}

// ResourceUnused: the device is chosen and not used.
func ResourceUnused() Kind {
	return kind("NAD003", Note, "a network of a type that uses no device names a resource",
		"remove the annotation, unless only the request of the injector is wanted")
}

// AnnotationMisplaced: nobody reads it.
func AnnotationMisplaced() Kind {
	return kind("NAD004", Error, "an annotation is misspelt or in the wrong place",
		"move it where it belongs, as the finding says")
}

// AnnotationUnclean: the text is taken as it is.
func AnnotationUnclean() Kind {
	return kind("NAD005", Warning, "the annotation of a network has blanks, or several names",
		"write one name without blanks")
}

// NetworkMissing: the pod does not start.
func NetworkMissing() Kind {
	return kind("NAD006", Error, "a network is not in the namespace in which it is looked for",
		"write namespace/name, or make the network in that namespace")
}

// NetworksMalformed: the pod does not start.
func NetworksMalformed() Kind {
	return kind("NAD007", Error, "a pod's list of networks cannot be read",
		"write namespace/name@interface with commas between them, or a JSON list of objects with a name")
}

func networkKinds() []Kind {
	return []Kind{
		NetworkConfigUnusable(), NetworkWithoutResource(), ResourceUnused(), AnnotationMisplaced(),
		AnnotationUnclean(), NetworkMissing(), NetworksMalformed(),
	}
}
