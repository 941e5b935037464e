package inventory

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Format is a way to write an inventory.
type Format string

// The formats. Table is the one for people, JSON and YAML hold everything, and Name is for
// loops in a shell: one address a line.
const (
	Table Format = "table"
	Wide  Format = "wide"
	Tree  Format = "tree"
	JSON  Format = "json"
	YAML  Format = "yaml"
	Name  Format = "name"
)

// Formats are all formats.
func Formats() []Format { return []Format{Table, Wide, Tree, JSON, YAML, Name} }

// Options are how people like it. JSON, YAML and Name are the same for everyone.
type Options struct {
	// Width is the number of columns of the terminal, 0 where there is none. Names of products
	// are cut for it, and sentences broken; addresses never are.
	Width int
	// Color adds colours. They say nothing that is not also said in words.
	Color bool
	// ASCII leaves out what is in no keyboard.
	ASCII bool
}

// Write writes an inventory in a format, in one piece.
func (i *Inventory) Write(to io.Writer, f Format, o Options) error {
	var b bytes.Buffer
	p := &page{Buffer: &b, Options: o, fixes: map[string]bool{}}
	var err error
	switch f {
	case Table:
		p.table(i, columns())
		p.reasons(i, fewSubjects)
		p.footer(i)
	case Wide:
		p.table(i, wideColumns())
		p.reasons(i, 0)
		p.footer(i)
		p.notKnown(i)
	case Tree:
		p.tree(i)
		p.footer(i)
		p.notKnown(i)
	case JSON:
		err = i.json(&b)
	case YAML:
		err = i.yaml(&b)
	case Name:
		i.names(&b)
	default:
		return fmt.Errorf("write the inventory: there is no format %q; there are %s", string(f), formats())
	}
	if err == nil {
		_, err = to.Write(b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write the inventory: %w", err)
	}
	return nil
}

func formats() string {
	var all []string
	for _, f := range Formats() {
		all = append(all, string(f))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// page is a text for people while it is written.
type page struct {
	*bytes.Buffer
	Options
	fixes map[string]bool // what to do has been said, by ID of the finding
}
