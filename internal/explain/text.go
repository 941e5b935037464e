package explain

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"

	"kata-device-plugin/internal/prose"
)

// TextOptions are how text is written.
type TextOptions struct {
	// Width is the number of columns, 0 for 100.
	Width int
	// Now is what ages are counted from.
	Now time.Time
}

// Text writes a report for people, in the shape of kubectl describe.
func Text(w io.Writer, r *Report, o TextOptions) error {
	if o.Width == 0 {
		o.Width = 100
	}
	t := &text{Writer: bufio.NewWriter(w), TextOptions: o}
	kind, name, _ := strings.Cut(r.Subject.String(), " ")
	if kind == "resourceclaim" {
		kind = "claim"
	}
	t.field(strings.ToUpper(kind[:1])+kind[1:], name)
	t.field("State", r.State)
	if len(r.Chains) == 0 {
		t.field("Answer", "it asks for no device")
	}
	for _, c := range r.Chains {
		t.field("Answer", c.About+": "+c.answer())
	}
	for _, c := range r.Chains {
		t.chain(c)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write explanation: %w", err)
	}
	return nil
}

// answer is a chain in one line.
func (c Chain) answer() string {
	if b := c.Break(); b != nil {
		return fmt.Sprintf("stops at %q: %s [%s]", b.Name, b.Says, b.Check)
	}
	var open []string
	for _, s := range c.Steps {
		if s.Verdict == Unknown {
			open = append(open, fmt.Sprintf("%q", s.Name))
		}
	}
	if len(open) == 0 {
		return "nothing is wrong"
	}
	return "nothing is proven to be wrong; unknown: " + strings.Join(open, ", ")
}

type text struct {
	*bufio.Writer
	TextOptions
}

func (t *text) field(name, value string) {
	t.wrap(fmt.Sprintf("%-9s", name+":"), strings.Repeat(" ", 9), value)
}

func (t *text) chain(c Chain) {
	fmt.Fprintf(t, "\n%s\n", prose.Clean(strings.ToUpper(c.About[:1])+c.About[1:]))
	const indent = 17
	deep := strings.Repeat(" ", indent)
	for _, s := range c.Steps {
		head := fmt.Sprintf("  %-13s ", s.Verdict)
		if s.Verdict == NotReached {
			fmt.Fprintf(t, "%s %s\n", head, s.Name)
			continue
		}
		says := s.Name
		if s.Says != "" {
			says += ": " + s.Says
		}
		if s.Check != "" {
			says += " [" + s.Check + "]"
		}
		t.wrap(head+" ", deep, says)
		for _, e := range s.Evidence {
			t.wrap(deep+"- ", deep+"  ", t.evidence(e))
		}
		if s.Help != "" {
			t.wrap(deep+"help: ", deep+"      ", s.Help)
		}
		if s.Tell != "" {
			t.wrap(deep+"would tell: ", deep+"            ", s.Tell)
		}
	}
}

// evidence is a fact with its source and its age.
func (t *text) evidence(e Evidence) string {
	var from []string
	if e.Source != "" {
		from = append(from, e.Source)
	}
	if !e.At.IsZero() {
		from = append(from, age(t.Now.Sub(e.At)))
	}
	if len(from) == 0 {
		return e.Text
	}
	return e.Text + " (" + strings.Join(from, ", ") + ")"
}

// age is how long ago something was, as kubectl writes it. What is to come is not dated.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "dated later than now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// wrap writes words in lines that are not wider than the terminal.
func (t *text) wrap(head, indent, words string) { prose.Wrap(t, t.Width, head, indent, words) }
