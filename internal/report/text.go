// Package report renders the result of checks: as text for people, as JSON for programs, and
// as SARIF for reviews of code. The same result gives the same bytes.
package report

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// TextOptions are how text is written.
type TextOptions struct {
	// Color marks severities. They are spelled out all the same.
	Color bool
	// Verbose lists the checks that could not be made, each with what is missing.
	Verbose bool
}

// Text writes findings as compilers do, one after another: a line that begins with the place,
// then other places, evidence and advice, indented. The last line counts.
func Text(w io.Writer, r *check.Result, o TextOptions) error {
	b := bufio.NewWriter(w)
	for _, f := range r.Findings {
		if f.Ignored == "" {
			text(b, f, o)
		}
	}
	summary(b, r, o)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func text(w *bufio.Writer, f check.Finding, o TextOptions) {
	fmt.Fprintf(w, "%s: %s: %s\n", place(f.Place), mark(f, o), line(f.Message))
	for _, r := range f.Related {
		fmt.Fprintf(w, "  %s: note: %s\n", place(r.Place), line(r.Text))
	}
	for _, e := range f.Evidence {
		fmt.Fprintf(w, "  evidence: %s\n", line(e))
	}
	if f.Help != "" {
		fmt.Fprintf(w, "  help: %s\n", line(f.Help))
	}
}

// place is the place of what has one, so that every first line can be searched for alike.
func place(p manifest.Place) string {
	if p.File == "" {
		return "input"
	}
	return p.String()
}

// mark is the severity with the ID.
func mark(f check.Finding, o TextOptions) string {
	s := fmt.Sprintf("%s[%s]", f.Severity, f.ID)
	if !o.Color {
		return s
	}
	color := map[finding.Severity]string{finding.Error: "1;31", finding.Warning: "1;33", finding.Note: "1;36"}[f.Severity]
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// line keeps a text on one line: it may have been read from a file.
func line(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || c == '\r' {
			return ' '
		}
		if c < ' ' || c == 0x7f || 0x80 <= c && c < 0xa0 {
			return '?' // nor may it steer a terminal
		}
		return c
	}, s)
}

func summary(w *bufio.Writer, r *check.Result, o TextOptions) {
	if o.Verbose {
		for _, s := range r.Skipped {
			fmt.Fprintf(w, "skipped %s: the input has no %s\n", s.ID, strings.Join(s.Missing, ", and no "))
		}
	}
	var parts []string
	for _, s := range []finding.Severity{finding.Error, finding.Warning, finding.Note} {
		if n := r.Count(s); n > 0 {
			parts = append(parts, counted(n, s.String()))
		}
	}
	if len(parts) == 0 && !r.Blind() {
		parts = []string{"nothing found"}
		if len(r.Skipped) > 0 {
			parts[0] += " by " + counted(r.Made, "check") // so that it does not look like a pass of all
		}
	}
	if r.Blind() {
		parts = append(parts, "nothing was checked")
	}
	ignored := 0
	for _, f := range r.Findings {
		if f.Ignored != "" {
			ignored++
		}
	}
	if ignored > 0 {
		parts = append(parts, fmt.Sprintf("%d ignored", ignored))
	}
	fmt.Fprint(w, strings.Join(parts, ", "))
	if n := len(r.Skipped); n > 0 {
		fmt.Fprintf(w, "; %s skipped for lack of input", counted(n, "check"))
	}
	fmt.Fprintln(w)
	lists(w, r)
	gaps(w, r)
}

// lists says what findings rest on that no input says. Where there is none, nothing does.
func lists(w *bufio.Writer, r *check.Result) {
	if r.Count(finding.Error)+r.Count(finding.Warning) == 0 {
		return
	}
	kinds := map[string][]string{}
	for _, l := range r.Listed {
		kinds[l.Input] = append(kinds[l.Input], l.Kind)
	}
	for _, in := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Fprintf(w, "  rests on %s having every %s of the cluster: a list does not say what was selected for it\n", line(in),
			strings.Join(kinds[in], ", "))
	}
}

// gaps says what to add to the input. A few lines are read, and many are not.
func gaps(w *bufio.Writer, r *check.Result) {
	const most = 6
	all := r.Gaps()
	for i, g := range all {
		if i == most && len(all) > most+1 {
			var rest []string
			for _, other := range all[i:] {
				rest = append(rest, other.IDs...)
			}
			fmt.Fprintf(w, "  other inputs: %s (%s)\n", counted(len(rest), "check"), strings.Join(families(rest), ", "))
			return
		}
		fmt.Fprintf(w, "  needs %s: %s (%s)\n", strings.Join(g.Inputs, ", and "), counted(len(g.IDs), "check"),
			strings.Join(families(g.IDs), ", "))
	}
}

// families are those of checks, sorted.
func families(ids []string) []string {
	var all []string
	for _, id := range ids {
		all = append(all, strings.TrimRight(id, "0123456789"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
