package check

import (
	"errors"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// What Multus reads and writes.
const (
	networkKind       = "NetworkAttachmentDefinition"
	networksKey       = "k8s.v1.cni.cncf.io/networks"
	defaultNetworkKey = "v1.multus-cni.io/default-network"
	resourceNameKey   = "k8s.v1.cni.cncf.io/resourceName"
	// sliceNameKey is the attribute of a device of DRA that says the same.
	sliceNameKey = "k8s.cni.cncf.io/resourceName"
	// multusNamespace is where Multus looks for the default network of a pod that names none.
	multusNamespace = "kube-system"
)

// Attachment is one network that a workload asks for.
type Attachment struct {
	Namespace, Name string
	At              manifest.Value
}

// Key is the network's namespace and name.
func (a Attachment) key() string { return a.Namespace + "/" + a.Name }

// networks reads the annotations that name networks.
func (w *Workload) networks() {
	annotations := w.Meta.Get("annotations")
	w.attach(annotations.Get(defaultNetworkKey), multusNamespace)
	w.attach(annotations.Get(networksKey), w.Namespace)
}

func (w *Workload) attach(v manifest.Value, namespace string) {
	text := strings.TrimSpace(v.Text())
	if text == "" {
		return
	}
	if strings.ContainsAny(text, `[{"`) { // as Multus tells the two forms apart
		w.attachJSON(v, namespace)
		return
	}
	for item := range strings.SplitSeq(text, ",") {
		a, what := shortForm(strings.TrimSpace(item), namespace)
		if what != "" {
			w.Malformed = append(w.Malformed, manifest.Problem{Place: v.Place(), What: what})
			continue
		}
		a.At = v
		w.Attachments = append(w.Attachments, a)
	}
}

// shortForm reads namespace/name@interface.
func shortForm(item, namespace string) (Attachment, string) {
	a := Attachment{Namespace: namespace}
	rest, iface, hasInterface := strings.Cut(item, "@")
	ns, name, hasNamespace := strings.Cut(rest, "/")
	if hasNamespace {
		a.Namespace = ns
	} else {
		name = ns
	}
	a.Name = name
	switch {
	case item == "":
		return a, "there is nothing between two commas, or behind the last one"
	case hasInterface && iface == "" || strings.Contains(iface, "@") || strings.Contains(name, "/"):
		return a, "\"" + item + "\" is not namespace/name@interface"
	case !framed(a.Namespace, lower+digits, "-"):
		return a, "\"" + item + "\" names no namespace before the slash"
	case !framed(name, lower+digits, "-."):
		return a, "\"" + item + "\" is no name of a network"
	}
	return a, ""
}

func (w *Workload) attachJSON(v manifest.Value, namespace string) {
	list, err := v.Embedded()
	if err != nil {
		p, _ := errors.AsType[manifest.Problem](err)
		w.Malformed = append(w.Malformed, manifest.Problem{Place: v.Place(), What: p.What})
		return
	}
	if list.Kind() != manifest.List {
		w.Malformed = append(w.Malformed, manifest.Problem{Place: v.Place(), What: "is not a list of networks"})
		return
	}
	for item := range list.Each() {
		a := Attachment{Namespace: namespace, Name: item.Get("name").Text(), At: item}
		if ns := item.Get("namespace").Text(); ns != "" {
			a.Namespace = ns
		}
		if a.Name == "" {
			w.Malformed = append(w.Malformed, manifest.Problem{Place: v.Place(), What: "has an element without a name"})
			continue
		}
		w.Attachments = append(w.Attachments, a)
	}
}
