package render

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// maxDepth is how deep a text may be nested. Custom resources hold whole schemas, which are deep.
const maxDepth = 200

// load reads the one document of a text, nil where there is none. It is no error of the text that it
// is empty.
func load(data []byte) (*yaml.Node, error) {
	l, err := yaml.NewLoader(strings.NewReader(string(data)), yaml.WithPlugin(loaderlimits.New(loaderlimits.DepthValue(maxDepth))))
	if err != nil {
		return nil, fmt.Errorf("read YAML: %w", err)
	}
	var doc, second yaml.Node
	if err := l.Load(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := l.Load(&second); err == nil {
		return nil, errSecond
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, nil
	}
	return &doc, nil
}

// errSecond: what follows a line ... would be lost.
var errSecond = errors.New("a second document follows")

// notYAML makes a problem of what the library found, on one line.
func notYAML(file string, line int, err error) Problem {
	if errors.Is(err, errSecond) {
		return Problem{File: file, Line: line, What: "has a second document", Err: err,
			Remedy: "begin each document of a stream with a line ---; of a policy keep one"}
	}
	what := err.Error()
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		line, what = line+max(e.Mark.Line-1, 0), e.Message
	}
	what = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, what)
	if len(what) > 300 {
		what = strings.ToValidUTF8(what[:300], "") + "..."
	}
	return Problem{File: file, Line: line, What: "is not YAML: " + what, Err: err,
		Remedy: "look at the indentation and the quotes here, or just before; templates have to be filled in first"}
}

// strict reads a document whose every field is known.
type strict struct {
	file     string
	problems Problems
}

// readers say how each known field is read.
type readers map[string]func(path string, n *yaml.Node)

func (r *strict) fault(path string, n *yaml.Node, what, remedy string) {
	value := ""
	if n.Kind == yaml.ScalarNode {
		value = quoted(n.Value)
	}
	r.problems.add(Problem{File: r.file, Line: n.Line, Path: path, Value: value, What: what, Remedy: remedy})
}

func below(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// fields reads a mapping. It refuses unknown and doubled fields.
func (r *strict) fields(path string, n *yaml.Node, known readers) {
	if n.Kind != yaml.MappingNode {
		r.fault(path, n, "is not an object", "write its fields, one a line")
		return
	}
	seen := map[string]bool{}
	for k, v := range pairs(n) {
		here := below(path, k.Value)
		read, ok := known[k.Value]
		switch {
		case k.Kind != yaml.ScalarNode || !ok:
			r.fault(path, k, "is not a known field", "known here are "+strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		case seen[k.Value]:
			r.fault(path, k, "stands here twice", "remove one of the two")
		case v.ShortTag() == "!!null":
			r.fault(here, v, "has no value", "write one, or remove the field")
		default:
			read(here, v)
		}
		seen[k.Value] = true
	}
}

// each reads a list.
func (r *strict) each(path string, n *yaml.Node, read func(path string, n *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.fault(path, n, "is not a list", "begin each entry with -, even a single one")
		return
	}
	for i, item := range n.Content {
		read(path+"["+strconv.Itoa(i)+"]", item)
	}
}

// string reads a string that a function finds nothing wrong with.
func (r *strict) string(to *string, check func(string) (what, remedy string)) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
			r.fault(path, n, "is not a string", "put it in quotes")
			return
		}
		if what, remedy := check(n.Value); what != "" {
			r.fault(path, n, what, remedy)
			return
		}
		*to = n.Value
	}
}

// strings reads a list of strings.
func (r *strict) strings(to *[]string, check func(string) (what, remedy string)) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		r.each(path, n, func(path string, n *yaml.Node) {
			var s string
			r.string(&s, check)(path, n)
			if s != "" && slices.Contains(*to, s) {
				r.fault(path, n, "stands here twice", "remove one of the two")
				return
			}
			*to = append(*to, s)
		})
	}
}
