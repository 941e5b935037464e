package check

import (
	"slices"

	"kata-device-plugin/internal/manifest"
)

// poolKey is what a driver calls devices that belong together.
type poolKey struct{ driver, name string }

// slicePool has slices, of which those of the newest generation count.
type slicePool struct {
	poolKey
	newest    *slice
	have, old int   // slices of the newest generation, and of others
	want      int64 // how many there are of the newest generation, where it is known
	known     bool
}

// whole says whether the input has every slice of the newest generation.
func (p *slicePool) whole() bool { return p != nil && p.known && int64(p.have) >= p.want }

// findPools sorts slices by their pools, which are in the order of the input.
func findPools(all []*slice) (list []*slicePool, byName map[poolKey]*slicePool) {
	byName = map[poolKey]*slicePool{}
	for _, s := range all {
		p := byName[s.poolKey]
		if p == nil {
			p = &slicePool{poolKey: s.poolKey, newest: s}
			byName[s.poolKey] = p
			list = append(list, p)
		}
		switch {
		case s.generation == p.newest.generation:
			p.have++
		case s.generation > p.newest.generation:
			p.newest, p.have, p.old = s, 1, p.old+p.have
		default:
			p.old++
		}
	}
	for _, p := range list {
		p.want, p.known = parseQuantity(p.newest.Get("spec", "pool", "resourceSliceCount").Text()).whole()
	}
	return list, byName
}

// slice is a ResourceSlice.
type slice struct {
	*manifest.Object
	poolKey
	node       string // "" where the devices are not those of one node
	generation int64
}

func newSlice(o *manifest.Object) *slice {
	spec := o.Get("spec")
	s := &slice{Object: o, poolKey: poolKey{spec.Get("driver").Text(), spec.Get("pool", "name").Text()}, node: spec.Get("nodeName").Text()}
	s.generation, _ = parseQuantity(spec.Get("pool", "generation").Text()).whole()
	return s
}

// tells says whether what a driver has published is known: everything, or at least that of
// other nodes.
func (w *World) tells(driver string) bool {
	return w.complete("ResourceSlice") ||
		slices.ContainsFunc(w.slices, func(s *slice) bool { return s.driver == driver })
}

// publishes says whether a driver has a slice for a node.
func (w *World) publishes(driver, node string) bool {
	return slices.ContainsFunc(w.slices, func(s *slice) bool {
		return s.driver == driver && (s.node == node || s.node == "" && s.perNode(w.nodeOf[node]))
	})
}

// perNode says whether a slice that is not of one node may have devices of a node.
func (s *slice) perNode(n *Node) bool {
	spec := s.Get("spec")
	terms := spec.Get("nodeSelector", "nodeSelectorTerms")
	return n == nil || spec.Get("allNodes").Text() == "true" || spec.Get("perDeviceNodeSelection").Text() == "true" ||
		n.matchesAny(terms)
}

// request is what a claim asks for: a request, or one of several that would do.
type request struct {
	manifest.Value
	name      string
	class     manifest.Value
	selectors manifest.Value
}

// requests are those of a claim or template.
func requests(o *manifest.Object) []request {
	var all []request
	for _, r := range Requests(specOf(o)) {
		if class := r.At.Get("deviceClassName"); class.Text() != "" {
			all = append(all, request{r.At, r.Name, class, r.At.Get("selectors")})
		}
	}
	return all
}

// claims goes through claims and templates.
func (w *World) claims(do func(*manifest.Object)) {
	for _, kind := range []string{"ResourceClaim", "ResourceClaimTemplate"} {
		for _, o := range w.kinds[kind] {
			do(o)
		}
	}
}

// claimsOf are the claims that a pod has by name, or that were made for it.
func (w *World) claimsOf(p *Workload) []*manifest.Object {
	status := p.Object.Get("status")
	names := []string{status.Get("extendedResourceClaimStatus", "resourceClaimName").Text()}
	for c := range p.Spec.Get("resourceClaims").Each() {
		names = append(names, c.Get("resourceClaimName").Text())
	}
	for c := range status.Get("resourceClaimStatuses").Each() {
		names = append(names, c.Get("resourceClaimName").Text())
	}
	var all []*manifest.Object
	for _, name := range names {
		o := w.claimOf[Ref{"ResourceClaim", p.Namespace, name}]
		if name != "" && o != nil && !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}

// driversOf are the drivers that have given devices to a claim.
func driversOf(claim *manifest.Object) []string {
	var all []string
	for r := range claim.Get("status", "allocation", "devices", "results").Each() {
		if d := r.Get("driver").Text(); d != "" && !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}
