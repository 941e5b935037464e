package check

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// Names knows which names are advertised, by whom, and what others are like them.
type Names struct {
	all     []*Producer
	exact   map[string][]*Producer
	bases   map[string][]*Producer // by what is behind the slash
	folded  map[string][]string    // what is advertised, by how it is spelled if one is careless
	nodes   map[string][]*Node     // that have a device of a name, healthy or not
	zeros   map[string][]*Node     // that have the key, and nothing behind it, or what a rename has left
	ignored map[string]bool        // those of scheduler extenders
	begins  []string               // beginnings of names that settings of plugins make
	known   []string               // everything that is advertised, sorted
	near    map[string]Suggestion
}

func (w *World) resolve() *Names {
	n := &Names{
		all: w.producers(), exact: map[string][]*Producer{}, bases: map[string][]*Producer{}, folded: map[string][]string{},
		nodes: map[string][]*Node{}, zeros: map[string][]*Node{}, ignored: w.extended(), near: map[string]Suggestion{},
	}
	seen := map[string]bool{}
	for _, p := range n.all {
		_, base := split(p.Name)
		n.exact[p.Name] = append(n.exact[p.Name], p)
		n.bases[base] = append(n.bases[base], p)
		seen[p.Name] = true
	}
	for _, node := range w.nodes {
		for _, name := range node.names() {
			if node.most(name) > 0 && !w.outlived(n, node, name) {
				n.nodes[name] = append(n.nodes[name], node)
				seen[name] = true
			} else {
				n.zeros[name] = append(n.zeros[name], node)
			}
		}
	}
	for _, a := range w.agents {
		n.begins = append(n.begins, a.patterns...)
	}
	for name := range seen {
		n.known = append(n.known, name)
	}
	slices.Sort(n.known)
	for _, name := range n.known {
		n.folded[fold(name)] = append(n.folded[fold(name)], name)
	}
	return n
}

// of are the producers of a name: those of the very name, and those whose prefix is not known.
func (n *Names) of(name string) []*Producer {
	prefix, base := split(name)
	if prefix == unknownPrefix {
		return n.bases[base]
	}
	all := slices.Clone(n.exact[name])
	return append(all, n.exact[unknownPrefix+"/"+base]...)
}

// advertised says whether something advertises a name, or answers for it.
func (n *Names) advertised(name string) bool {
	prefix, base := split(name)
	if len(n.of(name)) > 0 || len(n.nodes[name]) > 0 || n.ignored[name] {
		return true
	}
	if prefix == unknownPrefix {
		return slices.ContainsFunc(n.known, func(k string) bool { _, b := split(k); return b == base })
	}
	return slices.ContainsFunc(n.begins, func(b string) bool { return strings.HasPrefix(name, b) })
}

// Suggestion is an advertised name that a name was probably meant to be.
type Suggestion struct {
	Name string
	How  likeness
}

// likeness says in what two names differ.
type likeness uint8

const (
	unlike       likeness = iota
	likePrefix            // the same behind the slash, other or nothing before it
	likeSpelling          // case, or hyphens for underscores
	likeTypo              // one or two characters
)

// like finds the advertised name that is most like one that is not. Names that settings of
// plugins make are near to each other, and not mistaken for each other.
func (n *Names) like(name string) Suggestion {
	if s, ok := n.near[name]; ok {
		return s
	}
	s := n.search(name)
	n.near[name] = s
	return s
}

func (n *Names) search(name string) Suggestion {
	_, base := split(name)
	for _, p := range n.bases[base] {
		// Two vendors may each have a gpu: only where rules make prefixes is another one a mistake.
		if p.origin == fromConfig && p.Name != name {
			return Suggestion{p.Name, likePrefix}
		}
	}
	if !strings.Contains(name, "/") {
		for _, known := range n.known {
			if _, b := split(known); b == base {
				return Suggestion{known, likePrefix}
			}
		}
	}
	for _, known := range n.folded[fold(name)] {
		if known != name {
			return Suggestion{known, likeSpelling}
		}
	}
	if strings.HasPrefix(name, "nvidia.com/mig-") || strings.HasSuffix(name, ".shared") || strings.HasPrefix(name,
		implicitClass) {
		return Suggestion{}
	}
	for _, most := range []int{1, 2} {
		for _, known := range n.known {
			other := strings.HasPrefix(known, implicitClass) || strings.HasPrefix(known, unknownPrefix)
			if !other && len(name) > 4*most && distance(known, name, most) <= most {
				return Suggestion{known, likeTypo}
			}
		}
	}
	return Suggestion{}
}

// source says where a suggestion comes from, as places of a finding.
func (n *Names) source(f Finding, name string) Finding {
	producers := n.exact[name]
	for i, p := range producers {
		if i == 3 {
			break
		}
		f = p.note(f)
	}
	if nodes := n.nodes[name]; len(producers) == 0 && len(nodes) > 0 {
		f = f.with(nodes[0].key(name).KeyPlace(), "node %s has %q", nodes[0].Name, name)
	}
	return f
}

// origin is in words who advertises a name.
func (n *Names) origin(name string) string {
	if producers := n.exact[name]; len(producers) > 0 {
		return producers[0].Why
	}
	if nodes := n.nodes[name]; len(nodes) > 0 {
		return "on node " + nodes[0].Name
	}
	return "not known"
}

// Spelling is a line of the table of names: who advertises one.
type Spelling struct {
	Name       string
	Advertised []Advertiser
	// Nodes counts the nodes that have a device of the name.
	Nodes int
}

// Advertiser is one origin of a name.
type Advertiser struct {
	Object Ref
	Place  manifest.Place
	Why    string
}

// table lists all names that are advertised.
func (n *Names) table() []Spelling {
	var all []Spelling
	for _, name := range n.known {
		s := Spelling{Name: name, Nodes: len(n.nodes[name])}
		for _, p := range n.exact[name] {
			s.Advertised = append(s.Advertised, Advertiser{p.Object, p.At, p.Why})
		}
		all = append(all, s)
	}
	return all
}
