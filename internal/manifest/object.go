package manifest

import (
	"slices"
	"strings"
)

// Object is one Kubernetes object of an input.
type Object struct {
	Value
	APIVersion, Kind string
	// Namespace is as it is written, "" when it is not.
	Namespace, Name string
	// FromCluster: the API server has had the object. What it says of itself has been
	// defaulted, admitted and perhaps changed; a manifest is a wish.
	FromCluster bool
}

// Group is the API group, "" for the core group.
func (o *Object) Group() string {
	if group, _, ok := strings.Cut(o.APIVersion, "/"); ok {
		return group
	}
	return ""
}

// Annotation is an annotation of the object.
func (o *Object) Annotation(key string) Value { return o.Get("metadata", "annotations", key) }

// String is the object's identity, as kubectl takes it, with the namespace before the name.
func (o *Object) String() string {
	if o.Namespace == "" {
		return strings.ToLower(o.Kind) + " " + o.Name
	}
	return strings.ToLower(o.Kind) + " " + o.Namespace + "/" + o.Name
}

// asObject says whether a value looks like an object of the API.
func asObject(v Value, apiVersion, kind string) (*Object, bool) {
	o := &Object{Value: v, APIVersion: v.Get("apiVersion").Text(), Kind: v.Get("kind").Text()}
	if o.APIVersion == "" {
		o.APIVersion = apiVersion
	}
	if o.Kind == "" {
		o.Kind = kind
	}
	if o.APIVersion == "" || o.Kind == "" {
		return nil, false
	}
	meta := v.Get("metadata")
	o.Namespace, o.Name = meta.Get("namespace").Text(), meta.Get("name").Text()
	o.FromCluster = meta.Get("uid").Text() != "" || meta.Get("resourceVersion").Text() != "" || v.Get("status").Len() > 0
	return o, true
}

// objects takes lists apart. Secrets are left where they are: nothing here needs one.
func (l *loader) objects(v Value, apiVersion, kind string) []*Object {
	o, ok := asObject(v, apiVersion, kind)
	switch {
	case !ok || o.Kind == "Secret" || o.Kind == "SecretList":
		return nil
	case !strings.HasSuffix(o.Kind, "List") || v.Get("items").Kind() != List:
		return []*Object{o}
	}
	of := strings.TrimSuffix(o.Kind, "List") // empty for a List of anything
	api := ""
	if of != "" {
		api = o.APIVersion
	}
	var all []*Object
	for item := range v.Get("items").Each() {
		item.path = "" // it is the path within the object
		all = append(all, l.objects(item, api, of)...)
	}
	if meta := v.Get("metadata"); meta.Get("continue").Text() == "" && meta.Get("remainingItemCount").Text() == "" {
		l.wholeLists(all) // a page has a part
	}
	return all
}

// wholeLists notes kinds of which a list seems to have all objects of a cluster: it was
// obtained from one, and is of more than one namespace or of things without a namespace.
// A list of one namespace proves nothing about the others, and one of several kinds nothing
// at all: kubectl prints it for objects that were named one by one, too, but never of more
// than one namespace.
func (l *loader) wholeLists(all []*Object) {
	byKind := map[string][]*Object{}
	namespaces := map[string]bool{}
	for _, o := range all {
		byKind[o.Kind] = append(byKind[o.Kind], o)
		if o.Namespace != "" {
			namespaces[o.Namespace] = true
		}
	}
	if len(byKind) > 1 && len(namespaces) < 2 {
		return
	}
	for kind, objects := range byKind {
		wild := slices.ContainsFunc(objects, func(o *Object) bool { return !o.FromCluster })
		several := slices.ContainsFunc(objects, func(o *Object) bool { return o.Namespace != objects[0].Namespace })
		if kind = Folded(kind); wild || !several && objects[0].Namespace != "" || l.set.complete[kind] {
			continue
		}
		l.set.complete[kind], l.set.listed[kind] = true, objects[0].Place().File
	}
}

// Folded is a kind as people write it in a command: in lower case, of one or of many, as a
// resource with its group, or short.
func Folded(kind string) string {
	kind, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(kind)), ".")
	kind = strings.ReplaceAll(kind, "-", "")
	if long, ok := map[string]string{"no": "node", "po": "pod", "cm": "configmap", "ds": "daemonset",
		"netattachdef": "networkattachmentdefinition"}[kind]; ok {
		return long
	}
	switch {
	case strings.HasSuffix(kind, "policies"):
		return strings.TrimSuffix(kind, "ies") + "y"
	case strings.HasSuffix(kind, "classes"):
		return strings.TrimSuffix(kind, "es")
	case strings.HasSuffix(kind, "s") && !strings.HasSuffix(kind, "class"):
		return strings.TrimSuffix(kind, "s")
	}
	return kind
}
