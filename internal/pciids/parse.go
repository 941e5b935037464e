package pciids

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// OddLinesError says that a list has lines that are not of its form.
type OddLinesError struct {
	Count int
	// Line is the number of the first one, from 1, Text its beginning, and Want what it lacks.
	Line       int
	Text, Want string
}

// Error names the first line, and says how many there are.
func (e *OddLinesError) Error() string {
	return fmt.Sprintf("list of PCI IDs: line %d: %q: want %s; odd lines: %d; mend them, or name a newer file pci.ids",
		e.Line, e.Text, e.Want, e.Count)
}

// parser goes through a list line by line. How far a line is indented says what it is: what a
// line names belongs to the nearest line above it that is indented less.
type parser struct {
	ids    *IDs
	number int // of the line
	odd    *OddLinesError
	// in is the section that the last line without a tab belongs to, and top its number. inner
	// says whether the last line with one tab can have lines below it.
	in    section
	top   uint32
	inner bool
}

type section int

const (
	nowhere section = iota // also below an odd line
	amongVendors
	amongClasses
)

func parse(text string) (*IDs, error) {
	p := parser{ids: &IDs{text: text}}
	for at := 0; at < len(text); {
		line, _, _ := strings.Cut(text[at:], "\n")
		p.number++
		p.line(line, at+len(line))
		at += len(line) + 1
	}
	for _, x := range []*index{&p.ids.vendors, &p.ids.devices, &p.ids.bases, &p.ids.classes} {
		x.order()
	}
	switch {
	case len(p.ids.vendors) == 0:
		return nil, errors.New("list of PCI IDs: it has no vendor: name a file pci.ids that is not compressed")
	case p.odd != nil:
		return p.ids, p.odd
	}
	return p.ids, nil
}

// line takes in a line, which ends at a place in the text, as its name does.
func (p *parser) line(line string, end int) {
	switch {
	case skipped(line):
		if p.ids.version == "" {
			p.ids.version = version(line)
		}
	case strings.HasPrefix(line, "\t\t"):
		p.innermost(line)
	case line[0] == '\t':
		p.middle(line, end)
	default:
		p.outermost(line, end)
	}
}

// version takes the date out of a comment in the head of the list, if it has one.
func version(comment string) string {
	v, ok := strings.CutPrefix(comment, "#\tVersion:")
	v = strings.TrimSpace(v)
	if _, err := time.Parse("2006.01.02", v); !ok || err != nil {
		return ""
	}
	return strings.Clone(v)
}

// skipped says whether a line says nothing, and ends nothing.
func skipped(line string) bool { return line == "" || line[0] == '#' }

// outermost takes in a vendor or a base class.
func (p *parser) outermost(line string, end int) {
	p.in, p.inner = nowhere, false
	if rest, ok := strings.CutPrefix(line, "C "); ok {
		if key, name, ok := entry(rest, 2); ok {
			p.in, p.top = amongClasses, key
			p.ids.bases.add(key, end-len(name))
			return
		}
	} else if key, name, ok := entry(line, 4); ok {
		p.in, p.top = amongVendors, key
		p.ids.vendors.add(key, end-len(name))
		return
	}
	p.complain(line, `"10de  Name of a vendor" or "C 03  Name of a class"`)
}

// middle takes in a device or a subclass.
func (p *parser) middle(line string, end int) {
	p.inner = false
	switch p.in {
	case amongVendors:
		if key, name, ok := entry(line[1:], 4); ok {
			p.inner = true
			p.ids.devices.add(pair(p.top, key), end-len(name))
			return
		}
		p.complain(line, `a tab and "2330  Name of a device"`)
	case amongClasses:
		if key, name, ok := entry(line[1:], 2); ok {
			p.inner = true
			p.ids.classes.add(p.top<<8|key, end-len(name))
			return
		}
		p.complain(line, `a tab and "02  Name of a subclass"`)
	default:
		p.complain(line, "a vendor or a class above it")
	}
}

// innermost checks a subsystem, which is looked for in the text when it is asked for, or a
// programming interface, which nobody asks for.
func (p *parser) innermost(line string) {
	switch {
	case !p.inner:
		p.complain(line, "a device or a subclass above it")
	case p.in == amongVendors:
		if _, _, ok := subsystem(line[2:]); !ok {
			p.complain(line, `two tabs and "10de 16c1  Name of a subsystem"`)
		}
	default:
		if _, _, ok := entry(line[2:], 2); !ok {
			p.complain(line, `two tabs and "00  Name of a programming interface"`)
		}
	}
}

func (p *parser) complain(line, want string) {
	const shown = 80
	if p.odd == nil {
		p.odd = &OddLinesError{Line: p.number, Text: strings.Clone(line[:min(len(line), shown)]), Want: want}
	}
	p.odd.Count++
}
