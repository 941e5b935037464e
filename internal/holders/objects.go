package holders

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
)

// FromObjects lists what the objects of a cluster say. Whoever is outside of the input may have
// devices as well: then how many nobody has is not known.
func FromObjects(v *check.View) *List {
	l := &List{}
	for _, n := range v.Nodes() {
		l.requests(v, n)
	}
	l.claims(v)
	l.Unknown = append(lacking(v), l.nameless()...)
	l.sort()
	return l
}

// lacking is what objects outside of the input would tell.
func lacking(v *check.View) []string {
	var lacks []string
	for _, kind := range []string{"Node", "Pod", "ResourceClaim", "ResourceSlice"} {
		if !v.Complete(kind) {
			lacks = append(lacks, kind)
		}
	}
	if len(lacks) == 0 {
		return nil
	}
	return []string{"who else has devices, and which ones nobody has: the input may not have every " + strings.Join(lacks, ", ") +
		" (--live -A)"}
}

// nameless is what only nodes tell of devices that are numbers.
func (l *List) nameless() []string {
	if !slices.ContainsFunc(l.Rows, func(r Row) bool { return r.Device == "" }) {
		return nil
	}
	return []string{"which device of a device plugin a container has: only its node tells (--root, or holders there)"}
}

// requests are the devices of plugins: numbers.
func (l *List) requests(v *check.View, n *check.Node) {
	left := maps.Clone(n.Allocatable)
	for _, p := range v.PodsOn(n.Name) {
		for _, want := range p.Wants() {
			if _, has := n.Allocatable[want.Name]; !has || want.Count == 0 || p.ByClaim(want.Name) {
				continue
			}
			left[want.Name] -= want.Count
			for _, c := range p.Containers {
				if count := amount(c, want.Name); count > 0 && (!c.Init || want.InitOnly) {
					l.Rows = append(l.Rows, Row{Node: n.Name, Resource: want.Name, Count: count, Held: true, Namespace: p.Namespace,
						Pod: p.Object.Name, Container: c.Name})
				}
			}
		}
	}
	if !v.Complete("Pod") {
		return
	}
	for name, count := range left {
		if count > 0 {
			l.Rows = append(l.Rows, Row{Node: n.Name, Resource: name, Count: count})
		}
	}
}

func amount(c check.Container, name string) int64 {
	for _, list := range [][]check.Amount{c.Limits, c.Requests} {
		for _, a := range list {
			if a.Name == name {
				n, _ := a.Whole()
				return n
			}
		}
	}
	return 0
}

// claims are the devices of drivers, by their names.
func (l *List) claims(v *check.View) {
	published := map[check.DeviceName]check.Published{}
	for _, p := range v.Published() {
		published[p.DeviceName] = p
	}
	held := map[check.DeviceName]bool{}
	for _, a := range v.Allotted() {
		held[a.DeviceName] = true
		p := published[a.DeviceName]
		row := Row{Node: p.Node, Device: a.Device, Address: p.Address, Driver: a.Driver, Pool: a.Pool, Count: 1, Held: true,
			Claim: a.Claim.Namespace + "/" + a.Claim.Name, Admin: a.At.Get("adminAccess").Text() == "true"}
		if row.Node == "" {
			row.Node = unknown
		}
		l.Rows = append(l.Rows, l.users(v, row, a)...)
	}
	if !v.Complete("ResourceClaim") {
		return
	}
	for name, p := range published {
		if !held[name] {
			l.Rows = append(l.Rows, Row{Node: p.Node, Device: name.Device, Address: p.Address, Driver: name.Driver, Pool: name.Pool, Count: 1})
		}
	}
}

// users is a row for each container that uses a device of a claim; one without a pod where nobody does.
// One without a container is of a pod whose containers do not use the request.
func (l *List) users(v *check.View, row Row, a check.Allotted) []Row {
	var all []Row
	for _, name := range check.Reserved(v.Object(a.Claim)) {
		p := v.Pod(a.Claim.Namespace, name)
		if ended(p) {
			continue
		}
		one := row
		one.Namespace, one.Pod, one.Container = a.Claim.Namespace, name, unknown
		if p == nil {
			all = append(all, one)
			continue
		}
		containers := containersOf(p, a)
		if len(containers) == 0 {
			containers = []string{""}
		}
		for _, c := range containers {
			one.Container = c
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		all = []Row{row}
	}
	return all
}

// ended says whether a pod is known to have given its devices back.
func ended(p *check.Workload) bool {
	return p != nil && (p.Phase() == "Succeeded" || p.Phase() == "Failed")
}

// containersOf are the containers of a pod that use what a claim has for a request. Those that end before
// the others begin have it only where no other does.
func containersOf(p *check.Workload, a check.Allotted) []string {
	entries, mapped := entriesOf(p, a.Claim.Name), mappings(p, a)
	var stay, begin []string
	for _, c := range p.Containers {
		uses := slices.Contains(mapped, c.Name)
		for use := range c.Get("resources", "claims").Each() {
			uses = uses || entries[use.Get("name").Text()] && covers(use.Get("request").Text(), a.Request)
		}
		switch {
		case !uses:
		case c.Init:
			begin = append(begin, c.Name)
		default:
			stay = append(stay, c.Name)
		}
	}
	if len(stay) == 0 {
		return begin
	}
	return stay
}

// covers says whether a container that uses a request of a claim has a device that is for another one:
// that of a list of alternatives is REQUEST/ALTERNATIVE. Who names none has all.
func covers(used, of string) bool { return used == "" || used == of || strings.HasPrefix(of, used+"/") }

// mappings are the containers that a pod's status has for a request of the claim that the scheduler made
// for its extended resources.
func mappings(p *check.Workload, a check.Allotted) []string {
	status := p.Object.Get("status", "extendedResourceClaimStatus")
	if status.Get("resourceClaimName").Text() != a.Claim.Name {
		return nil
	}
	var all []string
	for m := range status.Get("requestMappings").Each() {
		if covers(m.Get("requestName").Text(), a.Request) {
			all = append(all, m.Get("containerName").Text())
		}
	}
	return all
}

// entriesOf are the names that a pod has for a claim.
func entriesOf(p *check.Workload, claim string) map[string]bool {
	all := map[string]bool{}
	for e := range p.Spec.Get("resourceClaims").Each() {
		if e.Get("resourceClaimName").Text() == claim {
			all[e.Get("name").Text()] = true
		}
	}
	for s := range p.Object.Get("status", "resourceClaimStatuses").Each() {
		if s.Get("resourceClaimName").Text() == claim {
			all[s.Get("name").Text()] = true
		}
	}
	return all
}

// NamesOf are the addresses that drivers publish.
func NamesOf(v *check.View) Names {
	all := map[string]string{}
	for _, p := range v.Published() {
		all[p.DeviceName.String()] = p.Address
	}
	return func(driver, pool, device string) string {
		return all[fmt.Sprintf("%s/%s/%s", driver, pool, device)]
	}
}
