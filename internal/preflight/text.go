package preflight

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"kata-device-plugin/internal/prose"
)

// Text writes the lists for people. The findings, which the lines name by their IDs, are not in it:
// they are written as those of checks are.
func Text(w io.Writer, r *Report, width int) error {
	if width == 0 {
		width = 100
	}
	t := &text{bufio.NewWriter(w), width}
	for _, way := range r.Ways {
		t.way(way)
	}
	for _, m := range r.Moves {
		t.moved(m)
	}
	for _, n := range r.Nodes {
		t.compared(n)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write preflight: %w", err)
	}
	return nil
}

// Verdict writes what comes of all of it, a line for each way: it is for the end, which is what people read.
func Verdict(w io.Writer, r *Report) error {
	for _, way := range r.Ways {
		open := 0
		for _, l := range way.Lines {
			if l.Answer == Unknown {
				open++
			}
		}
		line := fmt.Sprintf("%s: %s", way.Way, way.state())
		if open > 0 {
			line += fmt.Sprintf(", %d of %d answers are unknown", open, len(way.Lines))
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return fmt.Errorf("write preflight: %w", err)
		}
	}
	return nil
}

func (r Ready) state() string {
	return map[Answer]string{Yes: "ready", No: "not ready", Unknown: "not known to be ready"}[r.Answer()]
}

type text struct {
	*bufio.Writer
	width int
}

func (t *text) way(way Ready) {
	count := map[Answer]int{}
	for _, l := range way.Lines {
		count[l.Answer]++
	}
	fmt.Fprintf(t, "%s: %s (%d yes, %d no, %d unknown)\n", way.Way, way.state(), count[Yes], count[No], count[Unknown])
	section := ""
	for _, l := range way.Lines {
		if l.Section != section {
			section = l.Section
			fmt.Fprintf(t, "  %s\n", section)
		}
		t.line(l)
	}
	fmt.Fprintln(t)
}

// mostEvidence is how much of it a person reads. JSON has all.
const mostEvidence = 3

func (t *text) line(l Line) {
	head := fmt.Sprintf("    %-8s", l.Answer)
	deep := strings.Repeat(" ", len(head))
	says := l.Question
	if len(l.Findings) > 0 {
		says += " [" + strings.Join(l.Findings, ", ") + "]"
	}
	t.wrap(head, deep, says)
	for i, e := range l.Evidence {
		if i == mostEvidence {
			fmt.Fprintf(t, "%s- and %d more\n", deep, len(l.Evidence)-i)
			break
		}
		t.wrap(deep+"- ", deep+"  ", e)
	}
	for i, tell := range l.Tell {
		if i == mostEvidence {
			fmt.Fprintf(t, "%swould tell: and %d more\n", deep, len(l.Tell)-i)
			break
		}
		t.wrap(deep+"would tell: ", deep+"  ", tell)
	}
}

func (t *text) moved(m Moved) {
	fmt.Fprintf(t, "what depends on %s", prose.Clean(m.Resource))
	if m.Class != "" {
		fmt.Fprintf(t, ", which is to become %s", prose.Clean(m.Class))
	}
	fmt.Fprintln(t)
	if m.Lacks != "" {
		t.wrap("  ", "    ", m.Lacks)
	}
	for _, u := range m.Users {
		namespace := u.Namespace
		if namespace == "" {
			namespace = "-"
		}
		t.wrap(fmt.Sprintf("  %-20s", prose.Clean(namespace)), strings.Repeat(" ", 22),
			fmt.Sprintf("%d %s, for example %s", u.Count, u.Kind, u.Example))
	}
	if len(m.Users) == 0 {
		fmt.Fprintln(t, "  no workload of the input asks for it")
	}
	fmt.Fprintf(t, "  %s in other objects: see PRE022\n\n", places(len(m.Dependents)))
}

func places(n int) string {
	if n == 1 {
		return "1 place"
	}
	return fmt.Sprintf("%d places", n)
}

func (t *text) compared(n Compared) {
	fmt.Fprintf(t, "node %s: device plugin and DRA driver\n", prose.Clean(n.Node))
	if n.Lacks != "" {
		t.wrap("  not compared: ", "    ", n.Lacks)
	}
	for _, d := range n.Devices {
		state := "same"
		if d.Differs != "" {
			state = "differs"
		}
		t.wrap(fmt.Sprintf("  %s  %-8s", prose.Clean(d.Address), state), strings.Repeat(" ", 24),
			orNone(d.Resource)+" | "+orNone(d.Device))
	}
	fmt.Fprintln(t)
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// wrap writes words in lines that are not wider than the terminal.
func (t *text) wrap(head, indent, words string) { prose.Wrap(t, t.width, head, indent, words) }
