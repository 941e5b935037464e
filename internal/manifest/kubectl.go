package manifest

import "bytes"

// itemPart is an element of a list: its bytes, and how many lines of the document are before.
type itemPart struct {
	line int
	data []byte
}

// kubectlList recognizes what kubectl get -o yaml prints: items whose hyphens begin lines. A
// YAML library needs ten times the size of a text to read it; item by item, it needs that of
// the largest item only. Whatever does not look exactly like this is read as a whole.
func kubectlList(data []byte) (items []itemPart, footer []byte, ok bool) {
	const begin = "apiVersion: v1\nitems:\n"
	if rest, cut := bytes.CutPrefix(data, []byte("---\n")); cut {
		items, footer, ok = kubectlList(rest)
		for i := range items {
			items[i].line++
		}
		return items, footer, ok
	}
	if !bytes.HasPrefix(data, []byte(begin)) || bytes.Contains(data, []byte("&")) && bytes.Contains(data, []byte(": *")) {
		return nil, nil, false
	}
	at, line := len(begin), 2
	for at < len(data) {
		end := bytes.IndexByte(data[at:], '\n') + 1
		if end == 0 {
			end = len(data) - at
		}
		text := data[at : at+end]
		switch {
		case bytes.HasPrefix(text, []byte("- ")):
			items = append(items, itemPart{line, data[at : at+end]})
		case len(items) > 0 && (text[0] == ' ' || text[0] == '\n'):
			last := &items[len(items)-1]
			last.data = data[at-len(last.data) : at+end]
		default:
			return items, data[at:], len(items) > 0 && bytes.HasPrefix(data[at:], []byte("kind: List\n"))
		}
		at += end
		line++
	}
	return nil, nil, false
}

// itemByItem reads such a list. Each item is a list of one element to YAML.
func (l *loader) itemByItem(items []itemPart, footer []byte, line int, input *Input) error {
	n := &node{kind: List, line: int32(line + items[0].line + 1), column: 1}
	for _, item := range items {
		part, _, err := l.yaml(item.data, line+item.line)
		if err != nil {
			return err
		}
		if part != nil {
			n.children = append(n.children, part.children...)
		}
	}
	last := items[len(items)-1]
	end, _, err := l.yaml(footer, line+last.line+bytes.Count(last.data, []byte("\n")))
	if err != nil {
		return err
	}
	at := func(line int, text string) *node { return &node{kind: Text, line: int32(line), column: 1, text: text} }
	first := line + items[0].line - 1
	root := at(first, "")
	root.kind, root.children = Map, append([]*node{at(first, "apiVersion"), at(first, "v1"), at(first+1, "items"), n},
		end.children...)
	l.add(root, "", "", input)
	return nil
}
