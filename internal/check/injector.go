package check

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// Injector is the network resources injector: a webhook that adds requests to the first
// container of pods that attach networks.
type Injector struct {
	Object  *manifest.Object
	Webhook manifest.Value
	Policy  string // what becomes of pods while it is down
	// NameKeys are the annotations in which it looks for names of resources.
	NameKeys []string
	// Honor: it adds to what containers request already.
	Honor bool
}

// findInjector looks for the webhook's configuration, and for the arguments of the program
// behind it. There is one in a cluster.
func (w *World) findInjector() *Injector {
	i := &Injector{NameKeys: []string{resourceNameKey}}
	for _, o := range w.kinds["MutatingWebhookConfiguration"] {
		for h := range o.Get("webhooks").Each() {
			if named(h.Get("name").Text()) || named(h.Get("clientConfig", "service", "name").Text()) {
				i.Object, i.Webhook, i.Policy = o, h, h.Get("failurePolicy").Text()
			}
		}
	}
	if i.Policy == "" {
		i.Policy = "Fail"
	}
	for _, o := range w.kinds["Deployment"] {
		for c := range o.Get("spec", "template", "spec", "containers").Each() {
			if !named(c.Get("image").Text()) && !named(o.Name) {
				continue
			}
			if keys, _ := flag(c, "network-resource-name-keys"); keys != "" {
				i.NameKeys = strings.Split(keys, ",")
			}
			i.Honor = i.Honor || switched(c, "honor-resources")
		}
	}
	return i
}

func named(s string) bool { return strings.Contains(s, "network-resources-injector") }

// nameKeys are the annotations of a network that may name its resource. Multus knows one.
func (w *World) nameKeys() []string {
	keys := []string{resourceNameKey}
	for _, k := range w.injector.NameKeys {
		if k != resourceNameKey {
			keys = append(keys, k)
		}
	}
	return keys
}

// covers says whether the injector looks at a workload's pods. It leaves its own namespace and
// pods that say so alone.
func (i *Injector) covers(p *Workload) bool {
	if i.Object == nil || p.Namespace == "kube-system" || p.Meta.Get("labels", "nri.npwg.org/resourcename").Text() == "false" {
		return false
	}
	for e := range i.Webhook.Get("namespaceSelector", "matchExpressions").Each() {
		if e.Get("key").Text() != "kubernetes.io/metadata.name" {
			continue
		}
		in := slices.Contains(e.Get("values").Texts(), p.Namespace)
		if e.Get("operator").Text() == "NotIn" && in || e.Get("operator").Text() == "In" && !in {
			return false
		}
	}
	return true
}
