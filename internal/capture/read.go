package capture

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kata-device-plugin/internal/host"
)

// MaxSize bounds a capture: that of 2,048 GPUs behind their switches has an eighth of it.
const MaxSize = 64 << 20

// Read reads a capture. The error names the line and what is wrong with it.
func Read(from io.Reader) (*Capture, error) {
	r := &reader{capture: New(Meta{}), lines: bufio.NewReader(io.LimitReader(from, MaxSize+1))}
	if err := r.all(); err != nil {
		return nil, fmt.Errorf("read capture: line %d: %w", r.number, err)
	}
	return r.capture, nil
}

// reader reads line by line, with one line that was read ahead.
type reader struct {
	capture *Capture
	lines   *bufio.Reader
	number  int // of the line that was read last
	size    int
	ahead   []byte
	block   []string // lines behind the one that is parsed
}

// next is the next line without its end. It is io.EOF behind the last.
func (r *reader) next() (string, error) {
	line := r.ahead
	if r.ahead = nil; line == nil {
		var err error
		if line, err = r.lines.ReadBytes('\n'); err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
			return "", err
		}
	}
	r.number++
	if r.size += len(line); r.size > MaxSize {
		return "", fmt.Errorf("the capture has more than %d bytes", MaxSize)
	}
	text := strings.TrimSuffix(string(line), "\n")
	return strings.TrimSuffix(text, "\r"), nil // as Windows writes files
}

// peek says whether the next line belongs to a block.
func (r *reader) peek() bool {
	if r.ahead == nil {
		line, err := r.lines.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return false // next will say it again
		}
		r.ahead = line
	}
	return bytes.HasPrefix(r.ahead, []byte("\t"))
}

func (r *reader) all() error {
	first, err := r.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if err := checkVersion(first); err != nil {
		r.number = 1
		return err
	}
	for {
		line, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := r.number
		r.block = nil
		for r.peek() {
			text, err := r.next()
			if err != nil {
				return err
			}
			r.block = append(r.block, text[1:])
		}
		if err := r.parse(line); err != nil {
			r.number = at
			return err
		}
	}
}

func checkVersion(line string) error {
	is, n, _ := strings.Cut(line, " ")
	v, err := strconv.Atoi(n)
	switch {
	case is != magic || err != nil || v < 1:
		return fmt.Errorf("%.60q does not begin a capture: it begins with %q", line, magic+" 1")
	case v > version:
		return fmt.Errorf("the capture has version %d, and %d is the newest that is known here: use a newer program",
			v, version)
	}
	return nil
}

// parse takes one line, with the block behind it.
func (r *reader) parse(line string) error {
	words, err := split(line)
	if err != nil {
		return err
	}
	l := &fields{words: words}
	kind := l.word("kind")
	blockless := len(r.block) == 0
	switch kind {
	case "meta":
		err = r.meta(l)
	case "missing":
		r.capture.Missing = append(r.capture.Missing, Missing{l.word("what"), l.word("why")})
	case "links":
		if word := l.next(); word.quoted {
			r.capture.LinksErr = word.text
		} else if word.text == "complete" {
			r.capture.Links = &host.Links{Links: map[int]host.Link{}}
		} else {
			err = fmt.Errorf("links are %q: want complete, or a quoted error", word.text)
		}
	case "link", "default":
		err = r.link(kind, l)
	default:
		return r.entry(Kind(kind), l)
	}
	switch {
	case err != nil:
		return err
	case !blockless:
		return fmt.Errorf("an indented line behind %q, which has none", kind)
	}
	return l.end()
}

func (r *reader) meta(l *fields) error {
	m := &r.capture.Meta
	name, text := l.word("name"), l.word("value")
	switch name {
	case "time":
		return moment(&m.Time, "meta time", text)
	case "started":
		return moment(&m.Started, "meta started", text)
	case "redacted":
		m.Redacted = text == "yes"
		return nil
	}
	for _, f := range m.fields() {
		if f.name == name {
			*f.text = text
		}
	}
	return nil // what a later program adds is of no consequence
}

// moment takes a time, which has to be one that can be written again.
func moment(to *time.Time, what, text string) error {
	const last = 9999
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.UTC().Year() > last {
		return fmt.Errorf("%s %q: want one like 2006-01-02T15:04:05Z", what, text)
	}
	*to = t.UTC()
	return nil
}

func (r *reader) link(kind string, l *fields) error {
	all := r.capture.Links
	if all == nil {
		return fmt.Errorf("%q before \"links complete\"", kind)
	}
	index := l.number("index")
	if kind == "default" {
		all.Defaults = append(all.Defaults, host.Default{Index: index, Family: l.word("family"), Table: l.number("table")})
		return l.err
	}
	link := host.Link{Index: index, Name: l.word("name"), Kind: l.attribute("kind")}
	link.Master, link.Lower = l.optional("master"), l.optional("lower")
	if _, twice := all.Links[index]; twice {
		return fmt.Errorf("link %d is there twice: remove one", index)
	}
	all.Links[index] = link
	return l.err
}

func sortedKeys[V any](m map[int]V) []int { return slices.Sorted(maps.Keys(m)) }
