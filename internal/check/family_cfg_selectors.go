package check

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// typeOf is a pool's device type. Without one it is that of network devices.
func (p *Pool) typeOf() string {
	if t := p.GetFold("deviceType").Text(); t != "" {
		return t
	}
	return "netDevice"
}

// overlap: a device belongs to the first pool that takes it. Only what is certain from the
// text is said: that an earlier pool takes everything that a later one selects.
func overlap(w *World) []Finding {
	var all []Finding
	for _, c := range w.configs {
		for i, p := range c.Pools {
			if p.Shared {
				continue // shared devices may be in several pools
			}
			for _, earlier := range c.Pools[:i] {
				if earlier.Shared || earlier.typeOf() != p.typeOf() || !coversAll(earlier.selectors(), p.selectors()) {
					continue
				}
				f := found(c.Owner, p.Value, "the pool %q of %s selects only what the pool %q before it takes", p.Name.Text(),
					c.Owner, earlier.Name.Text()).about(p.full())
				all = append(all, f.with(earlier.Place(), "the earlier pool wins"))
				break
			}
		}
	}
	return all
}

// full is a pool's canonical name, "" when it has none.
func (p *Pool) full() string {
	if names := p.names(); len(names) > 0 {
		return names[0].String()
	}
	return ""
}

func coversAll(wide, narrow []manifest.Value) bool {
	for _, n := range narrow {
		if !slices.ContainsFunc(wide, func(w manifest.Value) bool { return covers(w, n) }) {
			return false
		}
	}
	return len(narrow) > 0
}

// filters says whether a field of a selector leaves anything out.
func filters(e manifest.Value) bool {
	switch {
	case !e.Exists() || generated(e.Key()) || strings.EqualFold(e.Key(), "needVhostNet"):
		return false
	case e.Kind() == manifest.List:
		return e.Len() > 0
	}
	return e.Text() != "" && e.Text() != "false"
}

// covers says whether everything that matches one selector matches another.
func covers(wide, narrow manifest.Value) bool {
	for e := range wide.Entries() {
		if !filters(e) {
			continue
		}
		have := narrow.GetFold(e.Key())
		if e.Kind() != manifest.List {
			if have.Text() != e.Text() {
				return false
			}
			continue
		}
		if have.Len() == 0 {
			return false
		}
		for _, value := range have.Texts() {
			whole, _, _ := strings.Cut(value, "#")
			if !slices.Contains(e.Texts(), value) && !slices.Contains(e.Texts(), whole) {
				return false
			}
		}
	}
	return true
}

func deviceTypeWrong(w *World) []Finding {
	var all []Finding
	w.pools(func(p *Pool) {
		if p.Shared {
			return
		}
		types := deviceTypes()
		i := slices.IndexFunc(types, func(t deviceType) bool { return t.name == p.typeOf() })
		if i < 0 {
			all = append(all, found(p.Config.Owner, p.GetFold("deviceType"),
				"%s has the deviceType %q, for which the plugin refuses the whole file",
				p.Config.Owner, p.typeOf()).about(p.full()))
			return
		}
		for _, s := range p.selectors() {
			for e := range s.Entries() {
				if knows(types[i].selectors, e.Key()) || !knows(sriovSchema().selectors, e.Key()) || !filters(e) {
					continue
				}
				all = append(all, foundKey(p.Config.Owner, e,
					"the pool %q of %s is of the type %s, which ignores %s: it takes devices as if that were not there",
					p.Name.Text(), p.Config.Owner, p.typeOf(), e.Key()).about(p.full()))
			}
		}
	})
	return all
}

func noShares(w *World) []Finding {
	var all []Finding
	w.pools(func(p *Pool) {
		unread := len(p.Config.Agents) == 0 // perhaps it is for nic-device-plugin, which has another key as well
		if !p.Shared || unread && p.GetFold("sharesPerDevice").Exists() {
			return
		}
		limit := p.GetFold("rdmaHcaMax")
		n, whole := parseQuantity(limit.Text()).whole()
		var f Finding
		switch {
		case !limit.Exists():
			f = found(p.Config.Owner, p.Value, "the pool %q of %s has no rdmaHcaMax, so it has no shares", p.Name.Text(), p.Config.Owner)
		case whole && n <= 0:
			f = found(p.Config.Owner, limit, "rdmaHcaMax of the pool %q of %s is %d, so it has no shares", p.Name.Text(),
				p.Config.Owner, n)
		default:
			return
		}
		if !unread {
			f = f.advise("set rdmaHcaMax")
		}
		all = append(all, f.about(p.full()).as(finding.Error))
	})
	return all
}

func selectorsWrong(w *World) []Finding {
	var all []Finding
	w.pools(func(p *Pool) {
		selectors, devices := p.GetFold("selectors"), p.GetFold("devices")
		empty := true
		for _, s := range p.selectors() {
			for e := range s.Entries() {
				empty = empty && !filters(e)
			}
		}
		say := func(at manifest.Value, what string) Finding {
			return found(p.Config.Owner, at, "the pool %q of %s %s", p.Name.Text(), p.Config.Owner, what).about(p.full())
		}
		switch {
		case p.Shared && devices.Len() > 0 && !empty:
			all = append(all, say(devices, "has devices and selectors, and the plugin refuses both together"))
		case p.Shared && devices.Len() == 0 && empty:
			all = append(all, say(p.Value, "selects nothing, which the plugin refuses"))
		case p.Shared:
		case !selectors.Exists():
			all = append(all, say(p.Value, "has no selectors, on which the plugin ends with an error"))
		case selectors.Kind() == manifest.List && selectors.Len() == 0:
			all = append(all, say(selectors, "has an empty list of selectors, and the plugin drops the pool"))
		case empty:
			all = append(all, say(selectors, "has selectors without a filter, so it takes every device of its "+
				"type").as(finding.Warning))
		}
	})
	return all
}

func moduleForDriver(w *World) []Finding {
	var all []Finding
	w.filtered("drivers", func(p *Pool, _, value manifest.Value) {
		if driver := pciDriver(value.Text()); driver != "" {
			f := found(p.Config.Owner, value, "the pool %q of %s wants the driver %q, which is a module for RDMA, and "+
				"not the driver of the PCI function",
				p.Name.Text(), p.Config.Owner, value.Text()).about(p.full())
			all = append(all, f.advise("write %s (the driver that %s stands on)", driver, value.Text()))
		}
	})
	return all
}

// filtered goes through the values of one selector.
func (w *World) filtered(key string, do func(p *Pool, selector, value manifest.Value)) {
	w.pools(func(p *Pool) {
		for _, s := range p.selectors() {
			for value := range s.GetFold(key).Each() {
				do(p, s, value)
			}
		}
	})
}

// interfaceUnknown compares with what the SR-IOV operator found on nodes.
func interfaceUnknown(w *World) []Finding {
	known := map[string]bool{}
	for _, o := range w.kinds["SriovNetworkNodeState"] {
		for i := range o.Get("status", "interfaces").Each() {
			known[strings.ToLower(i.Get("name").Text())] = true
			for vf := range i.Get("Vfs").Each() {
				known[strings.ToLower(vf.Get("name").Text())] = true
			}
		}
	}
	var all []Finding
	for _, key := range []string{"pfNames", "ifNames"} {
		w.filtered(key, func(p *Pool, _, value manifest.Value) {
			name, _, _ := strings.Cut(value.Text(), "#")
			if !known[strings.ToLower(name)] {
				all = append(all, found(p.Config.Owner, value,
					"the pool %q of %s selects the interface %q, which no node of the input has",
					p.Name.Text(), p.Config.Owner, name).about(p.full()))
			}
		})
	}
	return all
}

func rdmaWithoutRDMA(w *World) []Finding {
	var all []Finding
	w.pools(func(p *Pool) {
		for _, s := range p.selectors() {
			drivers := s.GetFold("drivers").Texts()
			with := func(d string) bool { return d != "vfio-pci" && !strings.HasSuffix(d, "uio") && d != "uio_pci_generic" }
			if s.GetFold("isRdma").Text() == "true" && len(drivers) > 0 && !slices.ContainsFunc(drivers, with) {
				all = append(all, found(p.Config.Owner, s.GetFold("isRdma"),
					"the pool %q of %s wants RDMA and the driver %s, with which there is none",
					p.Name.Text(), p.Config.Owner, drivers[0]).about(p.full()))
			}
		}
	})
	return all
}

func isID(s string) bool { return len(s) == 4 && strings.Trim(s, digits+"abcdef") == "" }

// idNeverMatches: the plugins compare texts.
func idNeverMatches(w *World) []Finding {
	var all []Finding
	for _, key := range []string{"vendors", "devices", "deviceIDs"} {
		w.filtered(key, func(p *Pool, _, value manifest.Value) {
			id := value.Text()
			if isID(id) {
				return
			}
			f := found(p.Config.Owner, value, "the pool %q of %s has %q in %s, which never matches: it is compared with "+
				"four lower-case hexadecimal digits",
				p.Name.Text(), p.Config.Owner, id, key).about(p.full())
			if plain := strings.TrimPrefix(strings.ToLower(id), "0x"); isID(plain) {
				f = f.advise("write %q (the same number as lspci -n shows it)", plain)
			}
			all = append(all, f)
		})
	}
	return all
}
