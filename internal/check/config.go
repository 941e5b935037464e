package check

import (
	"strings"

	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/nicconfig"
)

// Config is the configuration of a device plugin for network devices, as it stands in a
// ConfigMap or in an operator's object.
type Config struct {
	Object *manifest.Object
	Owner  Ref
	// At is the text, Root what it says, and Err why it says nothing.
	At, Root manifest.Value
	Err      error
	Pools    []*Pool
	// Agents read it, as far as the input shows.
	Agents []*Agent
}

// Pool is an entry of resourceList or configList.
type Pool struct {
	manifest.Value
	Config *Config
	Shared bool // of configList
	Name   manifest.Value
	Prefix manifest.Value
}

// ours says whether nic-device-plugin reads the configuration. It has rules of its own.
func (c *Config) ours() bool {
	for _, a := range c.Agents {
		if a.plugin != nicPlugin {
			return false
		}
	}
	return len(c.Agents) > 0
}

// reader names the plugin that a pool is for.
func (p *Pool) reader() string {
	switch {
	case p.Config.ours():
		return "nic-device-plugin"
	case p.Shared:
		return "the RDMA shared device plugin"
	}
	return "the SR-IOV network device plugin"
}

// findConfigs finds them in ConfigMaps, whatever the key is called, and in the policies of the
// NVIDIA network operator.
func (w *World) findConfigs() []*Config {
	var all []*Config
	for _, o := range w.kinds["ConfigMap"] {
		for data := range o.Get("data").Entries() {
			if looksLikeConfig(data.Text()) {
				all = append(all, w.readConfig(o, data))
			}
		}
	}
	for _, o := range w.kinds["NicClusterPolicy"] {
		for _, section := range []string{"rdmaSharedDevicePlugin", "sriovDevicePlugin"} {
			if at := o.Get("spec", section, "config"); looksLikeConfig(at.Text()) {
				all = append(all, w.readConfig(o, at))
			}
		}
	}
	return all
}

func looksLikeConfig(text string) bool {
	text = strings.ToLower(text)
	return strings.Contains(text, "resourcelist") || strings.Contains(text, "configlist")
}

func (w *World) readConfig(o *manifest.Object, at manifest.Value) *Config {
	c := &Config{Object: o, Owner: w.ref(o), At: at}
	c.Root, c.Err = at.Embedded()
	for _, a := range w.agents {
		if o.Kind == "ConfigMap" && a.reads(o, w.namespace(o)) {
			c.Agents = append(c.Agents, a)
		}
	}
	for _, list := range []string{"resourceList", "configList"} {
		for item := range c.Root.GetFold(list).Each() {
			c.Pools = append(c.Pools, &Pool{
				Value: item, Config: c, Shared: list == "configList",
				Name: item.GetFold("resourceName"), Prefix: item.GetFold("resourcePrefix"),
			})
		}
	}
	return c
}

// named is a name that a pool has for one of the agents that read it.
type poolName struct {
	nicconfig.Resource
	agent *Agent
}

// names are the pool's resources. Agents with different --resource-prefix make different ones.
func (p *Pool) names() []poolName {
	name := p.Name.Text()
	if name == "" {
		return nil
	}
	if prefix := p.Prefix.Text(); prefix != "" {
		return []poolName{{nicconfig.Resource{Prefix: prefix, Name: name, Origin: nicconfig.FromPool}, nil}}
	}
	historical := nicconfig.Resource{Prefix: "intel.com", Name: name, Origin: nicconfig.Historical}
	if p.Shared {
		historical.Prefix = "rdma"
	}
	var all []poolName
	for _, a := range p.Config.Agents {
		one := poolName{historical, a}
		if a.Prefix != "" && (!p.Shared || a.plugin == nicPlugin) {
			one.Resource = nicconfig.Resource{Prefix: a.Prefix, Name: name, Origin: nicconfig.FromFlag}
		}
		if len(all) == 0 || all[len(all)-1].String() != one.String() {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		return []poolName{{historical, nil}}
	}
	return all
}

// why says where a name's prefix comes from.
func (p *Pool) why(n poolName) string {
	switch n.Origin {
	case nicconfig.FromPool:
		return "prefix " + n.Prefix + ": resourcePrefix of the entry"
	case nicconfig.FromFlag:
		if n.Prefix == unknownPrefix {
			return "prefix not known: --resource-prefix of " + n.agent.ref().String() + " is out of its environment"
		}
		return "prefix " + n.Prefix + ": --resource-prefix of " + n.agent.ref().String()
	}
	if p.Shared {
		return "prefix " + n.Prefix + ": rdma-shared built-in default"
	}
	return "prefix " + n.Prefix + ": built-in default"
}

// selectors are the objects that a pool selects devices by: one, or each of a list.
func (p *Pool) selectors() []manifest.Value {
	v := p.GetFold("selectors")
	if v.Kind() == manifest.Map {
		return []manifest.Value{v}
	}
	var all []manifest.Value
	for s := range v.Each() {
		all = append(all, s)
	}
	return all
}
