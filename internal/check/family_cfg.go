package check

import (
	"errors"
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/nicconfig"
)

// The family CFG: configurations of plugins for network devices. What nic-device-plugin reads
// is judged by its own reader.
func configChecks() []Check {
	configs := []Need{needConfigs}
	return []Check{
		{finding.ConfigUnusable(), configs, configUnusable},
		{finding.KeyIgnored(), configs, keyIgnored},
		{finding.PoolTwice(), configs, poolTwice},
		{finding.PoolNameRefused(), configs, poolNameRefused},
		{finding.Overlap(), configs, overlap},
		{finding.DeviceTypeWrong(), configs, deviceTypeWrong},
		{finding.NoShares(), configs, noShares},
		{finding.SelectorsWrong(), configs, selectorsWrong},
		{finding.ModuleForDriver(), configs, moduleForDriver},
		{finding.InterfaceUnknown(), []Need{needConfigs, needNodeNICs}, interfaceUnknown},
		{finding.ConfigElsewhere(), []Need{needConfigs, needAgents}, configElsewhere},
		{finding.ConfigNewer(), []Need{needConfigs, needPods}, configNewer},
		{finding.RDMAWithoutRDMA(), configs, rdmaWithoutRDMA},
		{finding.IDNeverMatches(), configs, idNeverMatches},
		{finding.OwnConfigRefused(), []Need{needConfigs, needAgents}, ownConfigRefused},
	}
}

// pools goes through the pools that one of the two old plugins reads.
func (w *World) pools(do func(*Pool)) {
	for _, c := range w.configs {
		for _, p := range c.Pools {
			if !c.ours() {
				do(p)
			}
		}
	}
}

func configUnusable(w *World) []Finding {
	var all []Finding
	for _, c := range w.configs {
		if c.ours() {
			continue
		}
		if c.Err != nil {
			p, _ := errors.AsType[manifest.Problem](c.Err)
			if !strings.Contains(c.At.Text(), "{{") { // the source of a template: EVD001
				all = append(all, placed(c.Owner, p.Place, "", "the configuration %s of %s %s", c.At.Key(), c.Owner, p.What))
			}
			continue
		}
		for _, list := range []string{"resourceList", "configList"} {
			if v := c.Root.GetFold(list); v.Exists() && v.Kind() != manifest.List {
				all = append(all, found(c.Owner, v, "%s in %s of %s is not a list", list, c.At.Key(), c.Owner))
			}
		}
	}
	return all
}

// ownConfigRefused asks the reader that nic-device-plugin has.
func ownConfigRefused(w *World) []Finding {
	var all []Finding
	for _, c := range w.configs {
		if !c.ours() {
			continue
		}
		o := nicconfig.Options{Prefix: c.Agents[0].Prefix}
		if o.Prefix == unknownPrefix {
			o.Prefix = ""
		}
		_, err := nicconfig.Parse("", []byte(c.At.Text()), o)
		problems, _ := errors.AsType[nicconfig.Problems](err)
		for _, p := range problems {
			what := strings.TrimSpace(p.Path + " " + p.Value + " " + p.What)
			f := placed(c.Owner, c.At.Inside(p.Line, p.Column), "", "nic-device-plugin refuses %s of %s: %s", c.At.Key(),
				c.Owner, what)
			if p.Remedy != "" {
				f = f.advise("%s", p.Remedy)
			}
			all = append(all, f)
		}
	}
	return all
}

func keyIgnored(w *World) []Finding {
	var all []Finding
	for _, c := range w.configs {
		if c.ours() {
			continue
		}
		known := slices.Concat(sriovSchema().top, rdmaSchema().top)
		for e := range c.Root.Entries() {
			if !knows(known, e.Key()) {
				all = append(all, ignoredKey(c, e, "the plugin", known, ""))
			}
		}
	}
	w.pools(func(p *Pool) {
		s := sriovSchema()
		if p.Shared {
			s = rdmaSchema()
		}
		for e := range p.Entries() {
			switch {
			case knows(s.pool, e.Key()) || generated(e.Key()):
			case knows(s.selectors, e.Key()):
				all = append(all, ignoredKey(p.Config, e, p.reader(), nil, "it is a selector, which belongs into selectors"))
			default:
				all = append(all, ignoredKey(p.Config, e, p.reader(), s.pool, ""))
			}
		}
		for _, selector := range p.selectors() {
			for e := range selector.Entries() {
				switch {
				case knows(s.selectors, e.Key()):
				case knows(s.pool, e.Key()):
					all = append(all, ignoredKey(p.Config, e, p.reader(), nil, "it belongs beside selectors, not into it"))
				default:
					all = append(all, ignoredKey(p.Config, e, p.reader(), s.selectors, ""))
				}
			}
		}
	})
	return all
}

func ignoredKey(c *Config, e manifest.Value, reader string, known []string, why string) Finding {
	f := foundKey(c.Owner, e, "the key %q in %s of %s is ignored by %s", e.Key(), c.At.Key(), c.Owner, reader)
	if why != "" {
		f.Message += ": " + why
	}
	if near := nearest(known, e.Key()); near != "" {
		f = f.advise("did you mean %s (a key that the plugin knows)?", near)
	}
	return f
}

// poolTwice: the plugin refuses the file. The RDMA plugin names its socket without the prefix.
func poolTwice(w *World) []Finding {
	var all []Finding
	for _, c := range w.configs {
		if c.ours() {
			continue
		}
		seen := map[string]*Pool{}
		for _, p := range c.Pools {
			if p.Name.Text() == "" {
				continue
			}
			key, what := p.names()[0].String(), "twice"
			if p.Shared {
				key, what = "rdma:"+p.Name.Text(), "twice, whatever the prefix: its socket is named without it"
			}
			if other := seen[key]; other != nil {
				f := found(c.Owner, p.Name, "%s has the resource %q %s", c.Owner, p.Name.Text(),
					what).about(p.names()[0].String())
				all = append(all, f.with(other.Name.Place(), "the first one is here"))
				continue
			}
			seen[key] = p
		}
	}
	return all
}

// poolNameRefused: each plugin has a rule of its own, and kubelet's is another one.
func poolNameRefused(w *World) []Finding {
	var all []Finding
	w.pools(func(p *Pool) {
		name := p.Name.Text()
		if name == "" {
			all = append(all, found(p.Config.Owner, p.Value, "an entry in %s of %s has no resourceName", p.Config.At.Key(),
				p.Config.Owner))
			return
		}
		allowed, words := alnum+"_-", "letters, digits, hyphens and underscores"
		if p.Shared {
			allowed, words = alnum+"_", "letters, digits and underscores: no hyphen"
		}
		full := p.names()[0].String()
		if strings.Trim(name, allowed) != "" {
			all = append(all, found(p.Config.Owner, p.Name, "%s refuses the name %q in %s: it wants %s", p.reader(), name,
				p.Config.Owner, words).about(full))
			return
		}
		for _, n := range p.names() {
			if what := kubeletFault(n.String()); what != "" && n.Prefix != unknownPrefix {
				f := found(p.Config.Owner, p.Name, "kubelet refuses %q of %s, which %s accepts: it %s", n, p.Config.Owner,
					p.reader(), what).about(n.String())
				all = append(all, f)
				return
			}
		}
	})
	return all
}
