package render

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// Queue is what Kueue is to hand out, as a policy says it.
type Queue struct {
	// ClusterQueue is the name of the queue.
	ClusterQueue string
	// Flavors are the kinds of nodes, in the order in which Kueue tries them.
	Flavors []ResourceFlavor
}

// ResourceFlavor is one kind of node with what the queue may use of it.
type ResourceFlavor struct {
	Name       string
	NodeLabels []Entry
	// Quotas are quantities by resource: those of the policy's flavours, and others such as cpu.
	Quotas []Entry
}

// Entry is a key with its value, in the order of the file.
type Entry struct{ Key, Value string }

// KueueFiles is what Kueue needs so that its quotas count devices, whichever way pods get them.
type KueueFiles struct {
	// Objects are the ResourceFlavors and the ClusterQueue.
	Objects []byte
	// Configuration is the part of Kueue's own configuration that maps classes to resources. It is no object
	// of the cluster: it belongs into the ConfigMap that Kueue's manager reads.
	Configuration []byte
	// Notes say where Kueue counts in another way.
	Notes []string
}

// mostMappings is how many deviceClassMappings Kueue takes.
const mostMappings = 16

// Kueue writes those files for Kueue 0.19 or later. A device counts against one quota in every way, that of its
// name in limits:
//
//   - by a device plugin, the limit is what is counted;
//   - by a claim, deviceClassMappings gives the class that name, and the counts of its requests are added up;
//   - by an extended resource of a class, Kueue takes the name in limits, or that of the mapping, which is the
//     same, and leaves out the claim that the scheduler makes.
//
// Since all classes are mapped whatever their way is, a flavour can go another way without a change of quotas.
// From Kueue's documentation (Dynamic Resource Allocation, concepts and tasks, 0.19) and its package dra.
func Kueue(p *Policy) (*KueueFiles, error) {
	if p.Queue == nil {
		return nil, Problems{{File: "policy", Path: "kueue", What: "is missing",
			Remedy: "name a clusterQueue, and resourceFlavors with their quotas"}}
	}
	covered := p.covered()
	mappings, err := p.mappings(covered)
	if err != nil {
		return nil, err
	}
	files := &KueueFiles{Notes: p.kueueNotes(covered)}
	objects := p.flavorObjects()
	objects = append(objects, p.queueObject(covered))
	for i, n := range objects {
		text, err := yaml.Dump(n, yaml.WithLineWidth(-1))
		if err != nil {
			return nil, fmt.Errorf("write the objects of Kueue: %w", err)
		}
		if i > 0 {
			files.Objects = append(files.Objects, "---\n"...)
		}
		files.Objects = append(files.Objects, text...)
	}
	files.Configuration, err = yaml.Dump(mapping(
		field{"apiVersion", str("config.kueue.x-k8s.io/v1beta2")},
		field{"kind", str("Configuration")},
		field{"resources", mapping(field{"deviceClassMappings", mappings})},
	), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("write the configuration of Kueue: %w", err)
	}
	return files, nil
}

// covered are the resources that any flavor has a quota of, in the order in which they come up. Each flavor
// must list them all.
func (p *Policy) covered() []string {
	var names []string
	seen := map[string]bool{}
	for _, f := range p.Queue.Flavors {
		for _, q := range f.Quotas {
			if !seen[q.Key] {
				seen[q.Key] = true
				names = append(names, q.Key)
			}
		}
	}
	return names
}

// mappings are the deviceClassMappings of the resources that are devices. Kueue charges by class, so a class
// must be of one flavour.
func (p *Policy) mappings(covered []string) (*yaml.Node, error) {
	all := list()
	owner := map[string]string{}
	var problems Problems
	for _, name := range covered {
		f := p.flavour(name)
		if f == nil {
			continue
		}
		if other := owner[f.Class]; other != "" {
			problems.add(Problem{File: "policy", Path: "flavours", Value: quoted(f.Class),
				What:   "is the class of " + other + " and of " + name + ", and Kueue counts by class",
				Remedy: "make a class of its own for each, with its selectors in the class"})
		}
		owner[f.Class] = name
		all.Content = append(all.Content, mapping(field{"name", str(name)}, field{"deviceClassNames", list(str(f.Class))}))
	}
	if n := len(all.Content); n > mostMappings {
		problems.add(Problem{File: "policy", Path: "kueue",
			What:   fmt.Sprintf("has quotas of %d kinds of devices, and Kueue maps %d", n, mostMappings),
			Remedy: "leave some without a quota"})
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return all, nil
}

func (p *Policy) flavorObjects() []*yaml.Node {
	var all []*yaml.Node
	for _, f := range p.Queue.Flavors {
		labels := mapping()
		for _, l := range f.NodeLabels {
			put(labels, l.Key, str(l.Value))
		}
		o := kueueObject("ResourceFlavor", f.Name)
		if !empty(labels) {
			put(o, "spec", mapping(field{"nodeLabels", labels}))
		}
		all = append(all, o)
	}
	return all
}

func (p *Policy) queueObject(covered []string) *yaml.Node {
	flavors := list()
	for _, f := range p.Queue.Flavors {
		of := map[string]string{}
		for _, q := range f.Quotas {
			of[q.Key] = q.Value
		}
		quotas := list()
		for _, name := range covered {
			value := str(of[name])
			if of[name] == "" {
				value = str("0")
			}
			value.Style = yaml.DoubleQuotedStyle
			quotas.Content = append(quotas.Content, mapping(field{"name", str(name)}, field{"nominalQuota", value}))
		}
		flavors.Content = append(flavors.Content, mapping(field{"name", str(f.Name)}, field{"resources", quotas}))
	}
	everywhere := mapping()
	everywhere.Style = yaml.FlowStyle
	o := kueueObject("ClusterQueue", p.Queue.ClusterQueue)
	put(o, "spec", mapping(
		field{"namespaceSelector", everywhere}, // none would mean no namespace
		field{"resourceGroups", list(mapping(field{"coveredResources", words(covered)}, field{"flavors", flavors}))},
	))
	return o
}

func kueueObject(kind, name string) *yaml.Node {
	return mapping(field{"apiVersion", str("kueue.x-k8s.io/v1beta2")}, field{"kind", str(kind)},
		field{"metadata", mapping(field{"name", str(name)})})
}

// kueueNotes say what of the policy Kueue does not do, or does in its own way.
func (p *Policy) kueueNotes(covered []string) []string {
	has := map[string]bool{}
	for _, name := range covered {
		has[name] = true
	}
	var notes []string
	for _, f := range p.Flavours {
		if !has[f.Resource] {
			notes = append(notes, f.Resource+" has no quota: a workload that asks for it is not admitted to this queue")
		}
	}
	if !has["cpu"] || !has["memory"] {
		notes = append(notes, "cpu or memory has no quota: a workload that requests it is not admitted, "+
			"unless Kueue's configuration leaves it out")
	}
	if len(p.Alignments) > 0 && p.uses(DRA) {
		notes = append(notes, "Kueue's documentation (0.19) calls constraints of claims, which the alignment makes, not supported: "+
			"it counts devices, and does not look whether they can be aligned")
	}
	if p.uses(ExtendedResource) {
		notes = append(notes, "for extended resources of a class Kueue counts the largest init container or all others, "+
			"whichever is more, and no sidecar beside them: a pod whose sidecars have devices counts too little")
	}
	return notes
}
