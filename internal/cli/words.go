package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// registerOutput adds the flag for a format, with the words that it takes.
func registerOutput(c *cobra.Command, to *string, usual string, formats ...string) {
	c.Flags().StringVarP(to, "output", "o", usual, "`format`: "+strings.Join(formats, ", "))
	complete(c, "output", formats...)
}

func registerColor(flags *pflag.FlagSet, to *string) {
	flags.StringVar(to, "color", "auto", "colours: auto (on a terminal, unless $NO_COLOR is set), always, never")
}

func colors() []string { return []string{"auto", "always", "never"} }

// known refuses a word that is none of those that a flag takes. what says what they are words for.
func known(flag, what, word string, words []string) error {
	if slices.Contains(words, word) {
		return nil
	}
	return unusable(fmt.Errorf("--%s %s: there is no such %s", flag, word, what), "use one of "+strings.Join(words, ", "))
}

// complete offers the values of a flag to the shell.
func complete(c *cobra.Command, flag string, values ...string) {
	// The only error is that there is no such flag.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
