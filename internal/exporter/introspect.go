package exporter

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// introspect prints what the exporter promises.
func introspect(args []string, stdout io.Writer) error {
	if len(args) == 0 || args[0] != "metrics" {
		return fmt.Errorf("introspect %s: want introspect metrics", strings.Join(args, " "))
	}
	flags := flag.NewFlagSet("introspect metrics", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	format := flags.String("o", "table", "`format`: table or json")
	if err := flags.Parse(args[1:]); err != nil {
		return fmt.Errorf("introspect metrics: %w", err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("introspect metrics: unexpected argument %q", flags.Arg(0))
	}
	switch *format {
	case "table":
		return table(stdout)
	case "json":
		to := json.NewEncoder(stdout)
		to.SetIndent("", "  ")
		to.SetEscapeHTML(false)
		if err := to.Encode(Contract()); err != nil {
			return fmt.Errorf("print the metrics: %w", err)
		}
		return nil
	}
	return fmt.Errorf("introspect metrics -o %s: want table or json", *format)
}

func table(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tTYPE\tLABELS\tSTABILITY\tHELP")
	for _, m := range Contract() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.Name, m.Type, strings.Join(m.Labels, ","), m.Stability, m.Help)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the metrics: %w", err)
	}
	return nil
}

// Markdown is the contract as the table in docs/exporter.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning | stability |\n| --- | --- | --- | --- | --- |\n")
	for _, m := range Contract() {
		labels := "-"
		if len(m.Labels) > 0 {
			labels = "`" + strings.Join(m.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Type, labels, m.Help, m.Stability)
	}
	return b.String()
}
