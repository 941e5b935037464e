package render

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v4"
)

// queue reads the part of a policy that is for Kueue.
func (r *policyReader) queue(path string, n *yaml.Node) {
	q := &Queue{}
	r.fields(path, n, readers{
		"clusterQueue":    r.string(&q.ClusterQueue, subdomain),
		"resourceFlavors": func(path string, n *yaml.Node) { r.each(path, n, r.flavor(q)) },
	})
	for _, key := range []string{"clusterQueue", "resourceFlavors"} {
		if n.Kind == yaml.MappingNode && at(n, key) < 0 {
			r.fault(below(path, key), n, "is missing", "name a clusterQueue, and resourceFlavors with their quotas")
		}
	}
	r.p.Queue = q
}

func (r *policyReader) flavor(q *Queue) func(path string, n *yaml.Node) {
	return func(path string, n *yaml.Node) {
		var f ResourceFlavor
		r.fields(path, n, readers{
			"name":       r.string(&f.Name, subdomain),
			"nodeLabels": r.entries(&f.NodeLabels, labelKey, labelValue),
			"quotas":     r.entries(&f.Quotas, quotaName, quantity),
		})
		for _, key := range []string{"name", "quotas"} {
			if n.Kind == yaml.MappingNode && at(n, key) < 0 {
				r.fault(below(path, key), n, "is missing", "a flavor has a name and quotas")
			}
		}
		for _, other := range q.Flavors {
			if other.Name == f.Name && f.Name != "" {
				r.fault(below(path, "name"), get(n, "name"), "is a flavor already", "remove one of the two")
			}
		}
		q.Flavors = append(q.Flavors, f)
	}
}

// entries reads a mapping of names to texts. Numbers are as good: they are quantities.
func (r *strict) entries(to *[]Entry, key, value func(string) (what, remedy string)) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		if n.Kind != yaml.MappingNode {
			r.fault(path, n, "is not an object", "write name: value, one a line")
			return
		}
		seen := map[string]bool{}
		for k, v := range pairs(n) {
			here := fmt.Sprintf("%s[%s]", path, k.Value)
			if what, remedy := key(k.Value); what != "" || k.Kind != yaml.ScalarNode {
				r.fault(path, k, what, remedy)
				continue
			}
			if seen[k.Value] {
				r.fault(path, k, "stands here twice", "remove one of the two")
				continue
			}
			seen[k.Value] = true
			if v.Kind != yaml.ScalarNode || v.ShortTag() == "!!null" || v.ShortTag() == "!!bool" && v.Style == 0 {
				r.fault(here, v, "is not a text or number", "put it in quotes")
				continue
			}
			if what, remedy := value(v.Value); what != "" {
				r.fault(here, v, what, remedy)
				continue
			}
			*to = append(*to, Entry{k.Value, v.Value})
		}
	}
}

// checkQueue holds quotas against flavours: a device is whole.
func (r *policyReader) checkQueue(n *yaml.Node) {
	if r.p.Queue == nil {
		return
	}
	flavors := get(n, "kueue", "resourceFlavors")
	if len(r.p.Queue.Flavors) == 0 {
		r.fault("kueue.resourceFlavors", flavors, "is empty", "name a kind of node, and its quotas")
	}
	for i, f := range r.p.Queue.Flavors {
		quotas := get(flavors.Content[i], "quotas")
		if len(f.Quotas) == 0 {
			r.fault(fmt.Sprintf("kueue.resourceFlavors[%d].quotas", i), quotas, "is empty", "write how many devices the queue may use")
		}
		for _, q := range f.Quotas {
			if r.p.flavour(q.Key) == nil {
				continue
			}
			if _, err := strconv.ParseUint(q.Value, 10, 31); err != nil {
				r.fault(fmt.Sprintf("kueue.resourceFlavors[%d].quotas[%s]", i, q.Key), get(quotas, q.Key),
					"is no number of devices", "write a whole number")
			}
		}
	}
}
