package capture

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxPath is Linux's PATH_MAX.
const maxPath = 4096

// entry takes the line of an entry, with its block.
func (r *reader) entry(kind Kind, l *fields) error {
	e := Entry{Kind: kind, Path: l.word("path")}
	if !slices.Contains([]Kind{Dir, File, Symlink, Node, Socket, FIFO, Other, Absent, Unknown, Lock}, kind) {
		return fmt.Errorf("unknown kind of line %q", string(kind))
	}
	if l.err != nil {
		return l.err
	}
	if !strings.HasPrefix(e.Path, "/") || path.Clean(e.Path) != e.Path {
		return fmt.Errorf("path %q: want one from the root, without . and .. and a slash at the end", e.Path)
	}
	if len(e.Path) > maxPath {
		return fmt.Errorf("a path of %d bytes: %d are the most that Linux takes", len(e.Path), maxPath)
	}
	if _, twice := r.capture.entries[e.Path]; twice {
		return fmt.Errorf("%s is there twice: remove one", e.Path)
	}
	if err := e.permissions(l); err != nil {
		return err
	}
	e.Label = l.attribute("label")
	if text := l.attribute("modified"); text != "" {
		if err := moment(&e.Modified, e.Path+" is modified", text); err != nil {
			return err
		}
	}
	e.State = l.attribute("state")
	if op := l.attribute("op"); op != "" {
		e.Failure = &Failure{Op: op, Name: l.attribute("errno"), Text: l.attribute("text")}
	}
	switch {
	case kind == Unknown && e.Failure == nil:
		return fmt.Errorf("%s could not be examined, and nothing says why: want op= and errno=", e.Path)
	case e.Failure == nil && l.flag(unread):
		e.Unread = true
	case e.Failure == nil:
		if err := e.content(l, r.block); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
	}
	if (e.Failure != nil || e.Unread) && len(r.block) > 0 {
		return fmt.Errorf("%s was not read, but has indented lines behind it", e.Path)
	}
	if err := l.end(); err != nil {
		return err
	}
	r.capture.Add(e)
	return nil
}

func (e *Entry) permissions(l *fields) error {
	mode, owner := l.attribute("mode"), l.attribute("owner")
	if mode == "" && owner == "" {
		return nil
	}
	bits, err1 := strconv.ParseUint(mode, 8, 12)
	u, g, _ := strings.Cut(owner, ":")
	uid, err2 := strconv.ParseUint(u, 10, 31)
	gid, err3 := strconv.ParseUint(g, 10, 31)
	if err1 != nil || err2 != nil || err3 != nil {
		return fmt.Errorf("%s has the mode %q and the owner %q: want them like mode=0755 owner=0:0", e.Path, mode, owner)
	}
	e.Perm = &Perm{Mode: uint32(bits), UID: int(uid), GID: int(gid)}
	return nil
}

// content takes what is in an entry that was read.
func (e *Entry) content(l *fields, block []string) error {
	switch e.Kind {
	case Dir:
		return e.names(block)
	case File, Lock:
		return e.text(l, block)
	case Symlink:
		if e.Target = l.word("target"); e.Target == "" {
			return fmt.Errorf("a link to nothing: want its target")
		}
	case Node:
		kind, numbers := l.word("type"), l.word("number")
		major, minor, _ := strings.Cut(numbers, ":")
		a, err1 := strconv.ParseUint(major, 10, 32)
		b, err2 := strconv.ParseUint(minor, 10, 32)
		if err1 != nil || err2 != nil || kind != "char" && kind != "block" {
			return fmt.Errorf("a node of type %q and number %q: want char or block, and 511:0", kind, numbers)
		}
		e.Block, e.Major, e.Minor = kind == "block", uint32(a), uint32(b)
	case Socket, FIFO, Other, Absent, Unknown:
	}
	if len(block) > 0 {
		return fmt.Errorf("an indented line behind a %s, which has none", e.Kind)
	}
	return l.err
}

func (e *Entry) names(block []string) error {
	for _, line := range block {
		words, err := split(line)
		if err != nil {
			return err
		}
		if len(words) != 1 || words[0].text == "" || strings.ContainsAny(words[0].text, "/") {
			return fmt.Errorf("%q is not the name of one file", line)
		}
		e.Names = append(e.Names, words[0].text)
	}
	slices.Sort(e.Names)
	if len(slices.Compact(slices.Clone(e.Names))) < len(e.Names) {
		return fmt.Errorf("a name is there twice: remove one")
	}
	return nil
}

func (e *Entry) text(l *fields, block []string) error {
	word := l.next()
	lines := strings.Join(block, "\n")
	switch {
	case word.quoted && len(block) == 0:
		e.Text = []byte(word.text)
	case !word.quoted && word.text == "text" && len(block) > 0:
		e.Text = []byte(lines + "\n")
	case !word.quoted && word.text == "text-without-end" && len(block) > 0:
		e.Text = []byte(lines)
	default:
		return fmt.Errorf("its content is %.60q with %d indented lines behind it: want a quoted text, or text with lines",
			word.text, len(block))
	}
	return nil
}
