package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand writes the manual, for whoever packs the program. There is no date in it: the same
// program has the same manual.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man-pages DIRECTORY", Short: "Write the manual pages", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return unusable(err, "")
			}
			for _, of := range documented(c.Root()) {
				name := strings.ReplaceAll(of.CommandPath(), " ", "-") + ".1"
				if err := os.WriteFile(filepath.Join(args[0], name), manPage(of), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// documented are the commands that people use, each before those below it.
func documented(c *cobra.Command) []*cobra.Command {
	if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
		return nil
	}
	all := []*cobra.Command{c}
	for _, below := range c.Commands() {
		all = append(all, documented(below)...)
	}
	return all
}

// manPage is the manual page of a command.
func manPage(c *cobra.Command) []byte {
	var b bytes.Buffer
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"User Commands\"\n", strings.ToUpper(name), program)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(c.UseLine()))
	b.WriteString(".SH DESCRIPTION\n")
	for paragraph := range strings.SplitSeq(cmp.Or(c.Long, c.Short+"."), "\n\n") {
		fmt.Fprintf(&b, "%s\n.PP\n", roff(paragraph))
	}
	if below := documented(c)[1:]; len(below) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, of := range below {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(strings.TrimPrefix(of.CommandPath(), c.CommandPath()+" ")), roff(of.Short))
		}
	}
	if c.Flags().HasAvailableFlags() {
		b.WriteString(".SH OPTIONS\n")
		c.Flags().VisitAll(func(f *pflag.Flag) { option(&b, f) })
	}
	if c.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.EX\n%s\n.EE\n", roff(c.Example))
	}
	if c.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", roff(strings.ReplaceAll(c.Parent().CommandPath(), " ", "-")))
	}
	return b.Bytes()
}

func option(b *bytes.Buffer, f *pflag.Flag) {
	if f.Hidden {
		return
	}
	value, usage := pflag.UnquoteUsage(f)
	words := "--" + f.Name
	if f.Shorthand != "" {
		words = "-" + f.Shorthand + ", " + words
	}
	fmt.Fprintf(b, ".TP\n.B %s", roff(words))
	if value != "" {
		fmt.Fprintf(b, " %s", roff(value))
	}
	b.WriteString("\n" + roff(usage))
	if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" {
		b.WriteString(" (default " + roff(f.DefValue) + ")")
	}
	b.WriteString("\n")
}

// roff is a text of which nothing is taken for a command.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
