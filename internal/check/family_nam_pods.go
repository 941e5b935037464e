package check

import (
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// attached is what a workload attaches of one resource.
type attached struct {
	resource string
	at       manifest.Value
	networks []*Network // one for each attachment, in their order
}

// attachments groups a workload's attachments by the resources of their networks.
func (w *World) attachments(p *Workload) []attached {
	var all []attached
	index := map[string]int{}
	for _, a := range p.Attachments {
		n := w.networks[a.key()]
		if n == nil || n.Resource == "" {
			continue
		}
		i, ok := index[n.Resource]
		if !ok {
			i = len(all)
			index[n.Resource] = i
			all = append(all, attached{resource: n.Resource, at: a.At})
		}
		all[i].networks = append(all[i].networks, n)
	}
	return all
}

// attaching goes through the pods whose requests are written by people or injectors. Those of
// virtual machines are KubeVirt's business, and pods that have ended are nobody's.
func (w *World) attaching(do func(*Workload, attached)) {
	for _, p := range w.workloads {
		if p.VM || p.Live && !p.holds() {
			continue
		}
		for _, a := range w.attachments(p) {
			do(p, a)
		}
	}
}

func (a attached) names() string {
	n := a.networks[0]
	return fmt.Sprintf("network %q", n.Name)
}

// attachedNotRequested: without a request the pod gets no device, and Multus says nothing.
func attachedNotRequested(w *World) []Finding {
	var all []Finding
	w.attaching(func(p *Workload, a attached) {
		if p.want(a.resource) != nil || w.judgedOtherwise(p, a.resource) {
			return
		}
		n := a.networks[0]
		f := found(p.ref(), a.at, "%s attaches %s, whose resource %q is not requested by any container", p.ref(), a.names(),
			a.resource).about(a.resource)
		f = f.with(n.At.Place(), "network %s/%s names it here", n.Namespace, n.Name)
		for _, producer := range w.names.of(a.resource) {
			f = producer.note(f)
			break
		}
		_, base := split(a.resource)
		for _, want := range p.Wants() {
			if _, b := split(want.Name); b == base {
				f = f.with(want.At.KeyPlace(), "the container requests %q instead", want.Name)
			}
		}
		f = f.advise("request %s: %d in requests and limits", a.resource, len(a.networks))
		if like := w.names.like(a.resource); like.How != unlike && !w.names.advertised(a.resource) {
			// The network's name is the wrong one, which another check says.
			f = f.advise("correct the network's name to %s, and request %[1]s: %[2]d in requests and limits",
				like.Name, len(a.networks))
		}
		f = w.injected(f, p, a)
		if strings.HasPrefix(a.resource, unknownPrefix+"/") {
			f = f.as(finding.Note).because("%s", w.operator.why())
		}
		all = append(all, f)
	})
	return w.unattached(finding.AttachedNotRequested(), all)
}

// judgedOtherwise: the network's name is the wrong one, and the pod asks for the right one. NAM003,
// NAM008 or NAM009 say so of the network, and to change the pod would be wrong.
func (w *World) judgedOtherwise(p *Workload, resource string) bool {
	if strings.HasPrefix(resource, unknownPrefix+"/") || !strings.Contains(resource, "/") {
		_, base := split(resource)
		return slices.ContainsFunc(p.Wants(), func(want *Want) bool { _, b := split(want.Name); return b == base })
	}
	if w.names.advertised(resource) {
		return false
	}
	s := w.names.like(resource)
	return s.How != unlike && p.want(s.Name) != nil
}

// injected says what the injector has to do with it.
func (w *World) injected(f Finding, p *Workload, a attached) Finding {
	i := w.injector
	switch {
	case i.Object == nil:
		return f.because("no webhook configuration for network-resources-injector in the input")
	case !i.covers(p):
		return f.with(i.Webhook.Place(), "the injector leaves this pod alone: its namespace or its labels say so")
	case !p.Live:
		f = f.with(i.Webhook.Place(), "the injector is in scope")
		return f.as(finding.Note).advise("nothing, if the injector runs: it will request %s: %d in the first container",
			a.resource, len(a.networks))
	case i.Policy == "Ignore":
		return f.with(i.Webhook.Place(), "the injector was in scope and did not act; policy Ignore lets pods through "+
			"while it is down")
	}
	return f.with(i.Webhook.Place(), "the injector was in scope and did not act")
}

// requestedNotAttached is said because such a device stays where it was made: no interface
// in the pod.
func requestedNotAttached(w *World) []Finding {
	users := map[string]*Network{}
	for _, n := range w.ordered {
		if n.Resource != "" && users[n.Resource] == nil {
			users[n.Resource] = n
		}
	}
	var all []Finding
	for _, p := range w.workloads {
		if p.VM || p.Live && !p.holds() {
			continue
		}
		attached := map[string]bool{}
		for _, a := range w.attachments(p) {
			attached[a.resource] = true
		}
		unknown := false // a network that is not in the input may be the one
		for _, a := range p.Attachments {
			unknown = unknown || w.networks[a.key()] == nil
		}
		for _, want := range p.Wants() {
			if n := users[want.Name]; n != nil && !attached[want.Name] && !unknown {
				f := foundKey(p.ref(), want.At, "%s requests %q and attaches no network that uses it", p.ref(),
					want.Name).about(want.Name)
				all = append(all, f.with(n.At.Place(), "network %s/%s would", n.Namespace, n.Name))
			}
		}
	}
	return all
}

func tooFewRequested(w *World) []Finding {
	var all []Finding
	w.attaching(func(p *Workload, a attached) {
		want := p.want(a.resource)
		if want == nil || want.Count >= int64(len(a.networks)) || want.Count == 0 || w.injector.Honor && !p.Live {
			return
		}
		f := found(p.ref(), a.at, "%s has %d attachments of %q and requests %d", p.ref(), len(a.networks), a.resource,
			want.Count).about(a.resource)
		f = f.with(want.At.KeyPlace(), "requested here")
		all = append(all, f.advise("request %s: %d, one for each attachment", a.resource, len(a.networks)))
	})
	return all
}

func tooManyRequested(w *World) []Finding {
	var all []Finding
	w.attaching(func(p *Workload, a attached) {
		want := p.want(a.resource)
		if want == nil || want.Count <= int64(len(a.networks)) {
			return
		}
		f := foundKey(p.ref(), want.At, "%s requests %d of %q and has %d attachments of it", p.ref(), want.Count, a.resource,
			len(a.networks)).about(a.resource)
		all = append(all, f.with(a.at.Place(), "attached here"))
	})
	return all
}

// orderNotFixed: the devices of one resource are a set.
func orderNotFixed(w *World) []Finding {
	var all []Finding
	w.attaching(func(p *Workload, a attached) {
		first, second := a.networks[0], a.networks[0]
		for _, n := range a.networks {
			if n != first {
				second = n
				break
			}
		}
		if second == first {
			return
		}
		f := found(p.ref(), a.at, "%s attaches networks %q and %q, which share the resource %q: which device goes to "+
			"which network is not fixed",
			p.ref(), first.Name, second.Name, a.resource).about(a.resource)
		all = append(all, f.with(first.At.Place(), "network %s/%s", first.Namespace, first.Name).with(second.At.Place(),
			"network %s/%s", second.Namespace, second.Name))
	})
	return all
}
