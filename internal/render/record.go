package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v4"
)

// record says how the limits of a pod were spelt before they became a claim, by the name of the container.
// It is kept in an annotation where they would not come back as they were, and is not needed where
// limits are whole numbers at the end of their list, as most people write them.
type record map[string]kept

// kept is what a container's resources had.
type kept struct {
	Limits   map[string]mark `json:"limits,omitempty"`
	Requests map[string]mark `json:"requests,omitempty"`
	// LimitsAt and RequestsAt are where the maps stood, when they have gone.
	LimitsAt   *mark `json:"limitsAt,omitempty"`
	RequestsAt *mark `json:"requestsAt,omitempty"`
}

// mark is where an entry stood, and how it was written.
type mark struct {
	At    int    `json:"at"`
	Quote string `json:"quote,omitempty"` // ' or " around a number, { around a map in one line
	Head  string `json:"head,omitempty"`  // comments that have no other place
	Line  string `json:"line,omitempty"`
}

// takeOut removes the entries of some resources from the limits and requests of a container, and says how
// they were.
func takeOut(resources *yaml.Node, names []string) (k kept, comments []*yaml.Node) {
	k.Limits, comments = takeFrom(resources, "limits", names)
	k.Requests, _ = takeFrom(resources, "requests", names)
	limits, requests := at(resources, "limits"), at(resources, "requests") // before either goes
	k.LimitsAt = takeMap(resources, "limits", limits, len(k.Limits))
	k.RequestsAt = takeMap(resources, "requests", requests, len(k.Requests))
	return k, comments
}

// takeFrom takes entries out of one map. The comments at their keys come back, which the claims take over.
func takeFrom(resources *yaml.Node, key string, names []string) (marks map[string]mark, comments []*yaml.Node) {
	from := get(resources, key)
	for _, name := range names {
		if i := at(from, name); i >= 0 {
			if marks == nil {
				marks = map[string]mark{}
			}
			marks[name] = mark{At: i / 2, Quote: quoteOf(from.Content[i+1])}
		}
	}
	for _, name := range names {
		k, v, pair := remove(from, name)
		note := &yaml.Node{}
		if pair >= 0 {
			note.HeadComment, note.FootComment = k.HeadComment, k.FootComment
			note.LineComment = v.LineComment
			if key == "requests" {
				m := marks[name]
				m.Head, m.Line = k.HeadComment, v.LineComment
				marks[name] = m
			}
		}
		comments = append(comments, note)
	}
	return marks, comments
}

// takeMap removes a map that has become empty, unless it has comments of its own.
func takeMap(resources *yaml.Node, key string, place, taken int) *mark {
	m := get(resources, key)
	if taken == 0 || !empty(m) {
		return nil
	}
	was := &mark{At: place / 2}
	if m.Style&yaml.FlowStyle != 0 {
		was.Quote = "{"
	}
	k := resources.Content[at(resources, key)]
	if k.HeadComment+k.LineComment+k.FootComment+m.HeadComment+m.LineComment+m.FootComment != "" {
		// On the line of an empty map the comment is the value's: behind the key, the value would begin a line.
		m.LineComment, k.LineComment = k.LineComment+m.LineComment, ""
		if was.Quote == "" {
			return nil
		}
		return was
	}
	remove(resources, key)
	return was
}

func quoteOf(n *yaml.Node) string {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return `"`
	case n.Style&yaml.SingleQuotedStyle != 0:
		return `'`
	}
	return ""
}

// plain says whether limits come back without a record: see putBack. resources has lost them, and has
// no claims yet.
func (k kept) plain(resources *yaml.Node, names []string) bool {
	want := kept{Limits: map[string]mark{}}
	first := 0
	for range pairs(get(resources, "limits")) {
		first++
	}
	for i, name := range names {
		want.Limits[name] = mark{At: first + i}
	}
	if k.LimitsAt != nil {
		want.LimitsAt = &mark{At: len(resources.Content) / 2}
	}
	return reflect.DeepEqual(k, want)
}

// putBack writes entries into limits, and into requests where they were there. Without a record
// they go to the end of limits, and limits to the end of resources.
func putBack(resources *yaml.Node, names []string, counts map[string]int, comments map[string]*yaml.Node, k kept) {
	if k.Limits == nil {
		k.Limits = map[string]mark{}
	}
	for i, name := range names {
		if _, ok := k.Limits[name]; !ok {
			k.Limits[name] = mark{At: 1<<20 + i}
		}
	}
	parts := []part{{"limits", k.Limits, k.LimitsAt}, {"requests", k.Requests, k.RequestsAt}}
	if k.LimitsAt != nil && k.RequestsAt != nil && k.RequestsAt.At < k.LimitsAt.At {
		slices.Reverse(parts)
	}
	for _, p := range parts {
		p.putBack(resources, names, counts, comments)
	}
}

// part is limits or requests, as the record has it.
type part struct {
	key   string
	marks map[string]mark
	gone  *mark
}

func (p part) putBack(resources *yaml.Node, names []string, counts map[string]int, comments map[string]*yaml.Node) {
	order := inOrder(names, p.marks)
	if len(order) == 0 {
		return
	}
	m := get(resources, p.key)
	if m == nil || m.Kind != yaml.MappingNode {
		remove(resources, p.key)
		m = mapping()
		place := -1
		if p.gone != nil {
			place = p.gone.At
		}
		insert(resources, place, str(p.key), m)
	}
	if len(m.Content) == 0 {
		m.Style &^= yaml.FlowStyle
		if p.gone != nil && p.gone.Quote == "{" {
			m.Style |= yaml.FlowStyle
		} else if i := at(resources, p.key); m.LineComment != "" {
			resources.Content[i].LineComment, m.LineComment = m.LineComment, ""
		}
	}
	for _, name := range order {
		key, value := p.marks[name].entry(name, counts[name])
		if note := comments[name]; note != nil && p.key == "limits" {
			key.HeadComment, key.FootComment, value.LineComment = note.HeadComment, note.FootComment, note.LineComment
		}
		insert(m, p.marks[name].At, key, value)
	}
}

// entry is a number of devices as it was written.
func (m mark) entry(name string, count int) (key, value *yaml.Node) {
	key, value = str(name), number(count)
	key.HeadComment, value.LineComment = m.Head, m.Line
	switch m.Quote {
	case `"`:
		value.Tag, value.Style = "!!str", yaml.DoubleQuotedStyle
	case `'`:
		value.Tag, value.Style = "!!str", yaml.SingleQuotedStyle
	}
	return key, value
}

// inOrder sorts names by where they stood, so that each can be put back in its place.
func inOrder(names []string, marks map[string]mark) []string {
	var all []string
	for _, name := range names {
		if _, ok := marks[name]; ok {
			all = append(all, name)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(marks[a].At, marks[b].At) })
	return all
}

// record reads the record of a pod. Who has edited it gets the plain spelling.
func (p *pod) record() record {
	r := record{}
	if s := text(get(p.holder, "metadata", "annotations", fromKey)); s != "" {
		if err := json.Unmarshal([]byte(s), &r); err != nil {
			return record{}
		}
	}
	return r
}

// keep writes the record, if there is anything in it.
func (p *pod) keep(r record) error {
	unannotate(p.holder, fromKey)
	if len(r) == 0 {
		return nil
	}
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write down how the limits of %s were spelt: %w", p, err)
	}
	annotate(p.holder, fromKey, string(b))
	return nil
}
