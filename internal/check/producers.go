package check

import (
	"strings"

	"kata-device-plugin/internal/manifest"
)

// origin says what kind of thing advertises a name.
type origin uint8

const (
	fromConfig  origin = iota // a plugin's configuration, with a prefix that rules decide
	fromPolicy                // an operator's policy, with the operator's prefix
	fromWritten               // an object that has the full name
	fromImage                 // a program that has the name compiled in
	fromKubelet               // kubelet of a captured node, which knows it from a plugin
)

// Producer is something that advertises a resource, or will.
type Producer struct {
	// Name is the canonical name. Its prefix is ? when the input does not show it.
	Name string
	// Why says where the name comes from.
	Why    string
	Object Ref
	At     manifest.Place
	// Because are places that have a part in it.
	Because []Related

	origin origin
	agent  *Agent
	pool   *Pool
}

// note is the producer as a related place of a finding.
func (p *Producer) note(f Finding) Finding {
	f = f.with(p.At, "advertised here as %q (%s)", p.Name, p.Why)
	f.Related = append(f.Related, p.Because...)
	return f
}

const unknownPrefix = "?"

// operator is what is known of the SR-IOV network operator.
type operator struct {
	set manifest.Value // RESOURCE_PREFIX in its environment
	by  Ref
}

func (o operator) prefix() string {
	if o.set.Text() == "" {
		return unknownPrefix
	}
	return o.set.Text()
}

func (o operator) why() string {
	if o.set.Text() == "" {
		return "prefix not known: the operator's RESOURCE_PREFIX is not in the input"
	}
	return "prefix " + o.prefix() + ": RESOURCE_PREFIX of " + o.by.String()
}

func (w *World) findOperator() operator {
	for _, o := range w.kinds["Deployment"] {
		for c := range o.Get("spec", "template", "spec", "containers").Each() {
			for e := range c.Get("env").Each() {
				if e.Get("name").Text() == "RESOURCE_PREFIX" {
					return operator{e.Get("value"), w.ref(o)}
				}
			}
		}
	}
	return operator{}
}

// producers lists everything that advertises, but for nodes.
func (w *World) producers() []*Producer {
	var all []*Producer
	for _, c := range w.configs {
		all = append(all, c.producers()...)
	}
	for _, o := range w.kinds["SriovNetworkNodePolicy"] {
		name := o.Get("spec", "resourceName")
		if name.Text() == "" {
			continue
		}
		p := &Producer{Name: w.operator.prefix() + "/" + name.Text(), Why: w.operator.why(), Object: w.ref(o), At: name.Place(),
			origin: fromPolicy}
		if w.operator.set.Exists() {
			p.Because = []Related{{w.operator.set.Place(), "the operator's prefix is set here"}}
		}
		all = append(all, p)
	}
	for _, o := range w.kinds["KubeVirt"] {
		all = append(all, w.permitted(o)...)
	}
	for _, o := range w.kinds["DeviceClass"] {
		implicit := Producer{Name: implicitClass + o.Name, Why: "implied by the class's name", Object: w.ref(o),
			At: o.Get("metadata", "name").Place(), origin: fromWritten}
		all = append(all, &implicit)
		if name := o.Get("spec", "extendedResourceName"); name.Text() != "" {
			all = append(all, &Producer{Name: name.Text(), Why: "mapped to claims of " + w.ref(o).String(), Object: w.ref(o),
				At: name.Place(), origin: fromWritten})
		}
	}
	for _, n := range w.captured {
		all = append(all, n.producers()...)
	}
	for _, a := range w.agents {
		for _, name := range a.resources {
			all = append(all, &Producer{Name: name, Why: "compiled into " + a.what, Object: a.ref(),
				At: a.Container.Get("image").Place(), origin: fromImage, agent: a})
		}
	}
	return all
}

func (c *Config) producers() []*Producer {
	var all []*Producer
	for _, pool := range c.Pools {
		for _, n := range pool.names() {
			p := &Producer{Name: n.String(), Why: pool.why(n), Object: c.Owner, At: pool.Name.Place(), origin: fromConfig,
				agent: n.agent, pool: pool}
			if n.agent != nil && n.agent.Prefix == n.Prefix && pool.Prefix.Text() == "" {
				p.Because = []Related{{n.agent.PrefixAt.Place(), "--resource-prefix is set here"}}
			}
			all = append(all, p)
		}
	}
	return all
}

// permitted are the devices that a KubeVirt object lets machines have. Where another plugin
// serves them, KubeVirt's own does not.
func (w *World) permitted(o *manifest.Object) []*Producer {
	var all []*Producer
	devices := o.Get("spec", "configuration", "permittedHostDevices")
	for _, list := range []string{"pciHostDevices", "mediatedDevices", "usb"} {
		for d := range devices.Get(list).Each() {
			if name := d.Get("resourceName"); name.Text() != "" && d.Get("externalResourceProvider").Text() != "true" {
				all = append(all, &Producer{Name: name.Text(), Why: "permitted for machines of KubeVirt", Object: w.ref(o),
					At: name.Place(), origin: fromWritten})
			}
		}
	}
	return all
}

// extended are names that a scheduler extender answers for: kubelet drops them at admission,
// so no node has them.
func (w *World) extended() map[string]bool {
	all := map[string]bool{}
	read := func(v manifest.Value) {
		for e := range v.Get("extenders").Each() {
			for r := range e.Get("managedResources").Each() {
				if r.Get("ignoredByScheduler").Text() == "true" {
					all[r.Get("name").Text()] = true
				}
			}
		}
	}
	for _, o := range w.kinds["KubeSchedulerConfiguration"] {
		read(o.Value)
	}
	for _, o := range w.kinds["ConfigMap"] {
		for data := range o.Get("data").Entries() {
			if strings.Contains(data.Text(), "managedResources") {
				if v, err := data.Embedded(); err == nil {
					read(v)
				}
			}
		}
	}
	return all
}
