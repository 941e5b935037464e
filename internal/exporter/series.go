package exporter

import (
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/pci"
)

// devices is about functions.
func (s *scrape) devices() {
	if !s.may("device_info") {
		return
	}
	for i := range s.view.state.Functions {
		f := &s.view.state.Functions[i]
		vendor, product, driver, numa, group := facts(f.Facts)
		s.emit("device_info", 1, f.Address.String(), string(f.Type), vendor, product, driver, numa, group, strings.Join(f.Resources, ","))
	}
	for at, yes := range places(s.view.state, (*nodestate.Unit).Healthy) {
		s.emit("device_healthy", number(yes), at.address.String(), at.resource)
	}
	if !s.may("device_allocatable") {
		return
	}
	offered := func(u *nodestate.Unit) bool { return u.Offered == nodestate.Yes }
	for at, yes := range places(s.view.state, offered) {
		s.emit("device_allocatable", number(yes), at.address.String(), at.resource)
	}
}

// place is a function as a resource.
type place struct {
	address  pci.Address
	resource string
}

// places says of each declared function whether something is so of all of its units.
func places(of *nodestate.State, so func(*nodestate.Unit) bool) map[place]bool {
	all := map[place]bool{}
	for i := range of.Units {
		u := &of.Units[i]
		at := place{u.Address, u.Resource}
		before, known := all[at]
		all[at] = so(u) && (before || !known)
	}
	return all
}

// facts are those of a function in words, empty where they are not known.
func facts(f *host.Function) (vendor, product, driver, numa, group string) {
	if f == nil {
		return
	}
	if f.Known {
		vendor, product = f.Vendor.String(), f.Device.String()
	}
	if f.NUMA != host.NoNode {
		numa = strconv.Itoa(int(f.NUMA))
	}
	if f.Group != nil {
		group = f.Group.Number
	}
	return vendor, product, f.Driver, numa, group
}

// resources is about the numbers of each resource.
func (s *scrape) resources() {
	state := s.view.state
	for i := range state.Resources {
		r := &state.Resources[i]
		if r.Declared && s.may("devices") {
			s.emit("devices", float64(r.Discovered), r.Name, "discovered")
			s.emit("devices", float64(r.Excluded), r.Name, "excluded")
			s.emit("devices", float64(r.Healthy), r.Name, "healthy")
			s.emit("devices", float64(r.Unhealthy), r.Name, "unhealthy")
			for id, n := range r.WhyExcluded {
				s.emit("devices_excluded", float64(n), r.Name, id)
			}
			for id, n := range r.WhyUnhealthy {
				s.emit("devices_unhealthy", float64(n), r.Name, id)
			}
		}
		if r.Owner != "" && s.may("resource_owner_info") {
			s.emit("resource_owner_info", 1, r.Name, string(r.Owner))
		}
		if r.Offered >= 0 && s.may("resource_allocatable") {
			s.emit("resource_allocatable", float64(r.Offered), r.Name)
		}
		if r.Allocated >= 0 && s.may("resource_allocated") {
			s.emit("resource_allocated", float64(r.Allocated), r.Name)
		}
		if r.Free >= 0 && s.may("resource_free") {
			s.emit("resource_free", float64(r.Free), r.Name)
		}
	}
	for key, n := range s.view.transitions {
		s.emit("device_health_transitions_total", float64(n), key.address.String(), key.resource, key.to)
	}
	s.findings()
}

func (s *scrape) findings() {
	if !s.may("findings") {
		return
	}
	type kind struct{ id, severity string }
	count := map[kind]int{}
	for _, f := range s.view.state.Findings {
		count[kind{f.ID, f.Severity.String()}]++
	}
	for k, n := range count {
		s.emit("findings", float64(n), k.id, k.severity)
	}
}

// holders is about who has which device.
func (s *scrape) holders() {
	if !s.may("device_allocation_info") {
		return
	}
	var before []string
	for i := range s.view.state.Allocations {
		a := &s.view.state.Allocations[i]
		labels := []string{
			a.Address.String(), a.Device, string(a.By), a.Resource, a.Namespace, a.Pod, a.Container, a.Driver, a.Pool, a.Claim, a.Request, words(a.Admin),
		}
		if s.uids {
			labels = append(labels, a.UID)
		}
		// kubelet before 1.34 also names pods that have ended, of which one may have the same name.
		if !slices.Equal(labels, before) {
			s.emit("device_allocation_info", 1, labels...)
		}
		before = labels
	}
	if s.uids {
		u := s.view.state.UIDs
		s.emit("pod_uids", float64(u.Resolved), "resolved")
		s.emit("pod_uids", float64(u.Ambiguous), "ambiguous")
		s.emit("pod_uids", float64(u.Unknown), "unknown")
	}
	s.unreleased()
}

// words are an answer as a label.
func words(a nodestate.Answer) string {
	switch a {
	case nodestate.Yes:
		return "true"
	case nodestate.No:
		return "false"
	case nodestate.Unknown:
	}
	return ""
}

// unreleased is about what is held for nobody, by the source that holds it.
func (s *scrape) unreleased() {
	state := s.view.state
	for _, where := range []nodestate.Source{nodestate.Record, nodestate.Claims, nodestate.Specs} {
		if !s.fresh(where) || where == nodestate.Record && !s.fresh(nodestate.PodUIDs) || where == nodestate.Specs && (!s.fresh(nodestate.Claims) || state.UnreadClaims) {
			continue
		}
		var oldest nodestate.Unreleased
		n := 0
		for _, u := range state.Unreleased {
			if u.Where != where {
				continue
			}
			if n == 0 || u.Since.Before(oldest.Since) {
				oldest = u
			}
			n++
		}
		s.emit("allocations_not_released", float64(n), string(where))
		if n > 0 {
			s.emit("allocations_not_released_oldest_timestamp_seconds", s.seconds(oldest.Since), string(where))
		}
	}
}

// kubelet is about how kubelet knows the plugins.
func (s *scrape) kubelet() {
	state := s.view.state
	for _, r := range state.Registrations {
		if r.Registered != nodestate.Unknown && s.may("kubelet_registered") {
			s.emit("kubelet_registered", number(r.Registered == nodestate.Yes), r.Resource)
		}
		if r.Listening >= 0 && s.may("kubelet_plugin_sockets") {
			s.emit("kubelet_plugin_sockets", float64(r.Listening), r.Resource, "listening")
			s.emit("kubelet_plugin_sockets", float64(r.Dead), r.Resource, "dead")
		}
	}
	if s.may("resource_contested_devices") {
		for _, c := range state.Contests {
			s.emit("resource_contested_devices", float64(c.Devices), c.Resource, string(c.Reason))
		}
	}
}

// resolver is about claims and CDI specs.
func (s *scrape) resolver() {
	state := s.view.state
	if state.Claims != nil && s.may("claims") {
		for _, name := range nodestate.ClaimStates() {
			s.emit("claims", float64(state.Claims[name]), name)
		}
	}
	if state.Specs != nil && s.may("cdi_specs") {
		for _, name := range nodestate.SpecStates() {
			s.emit("cdi_specs", float64(state.Specs[name]), string(name))
		}
	}
	if !s.may("cdi_devices") {
		return
	}
	for _, n := range state.Names {
		for _, name := range nodestate.CDIStates() {
			s.emit("cdi_devices", float64(n.Count[name]), n.Kind, string(name))
		}
	}
}
