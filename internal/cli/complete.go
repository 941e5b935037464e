package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
)

// completeAll offers the shell the values of flags, and files by what they are called. A flag means
// the same wherever it is, so that its name is enough; those that a command has seen to itself stay.
func completeAll(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if from := completions(f.Name); from != nil {
			_ = c.RegisterFlagCompletionFunc(f.Name, from) // the error is that there is one
		}
	})
	if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && c.Runnable() {
		c.ValidArgsFunction = arguments(c)
	}
	for _, below := range c.Commands() {
		completeAll(below)
	}
}

// completions are for flags of a name, nil for those that any word may follow.
func completions(flag string) cobra.CompletionFunc {
	switch flag {
	case "color":
		return fixed(colors())
	case "complete":
		return fixed(kinds())
	case "explain":
		return fixed(append(findings(), cobra.CompletionWithDesc("all", "list all findings")))
	case "enable", "disable":
		return fixed(checkIDs())
	case "migrate":
		return fixed(resources())
	case "root":
		return files("snapshot", "txt")
	case "nic-config":
		return files("json", "yaml", "yml")
	case "ignore", "policy":
		return files("yaml", "yml")
	case "namespace", "context", "cluster", "user", "as", "resource-prefix", "salt", "interval", "timeout":
		return fixed(nil)
	}
	return nil
}

// arguments are what a command takes without a flag: files with objects or nodes, where it takes any.
func arguments(c *cobra.Command) cobra.CompletionFunc {
	objects := files("yaml", "yml", "json", "snapshot")
	switch {
	case c.Args == nil:
		return objects
	case c.Args(c, []string{"a", "b"}) != nil:
		return fixed(nil) // none, or a word
	}
	return func(c *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp // the name of an object
		}
		return objects(c, args, word)
	}
}

func fixed(words []cobra.Completion) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}

func files(extensions ...cobra.Completion) cobra.CompletionFunc {
	return cobra.FixedCompletions(extensions, cobra.ShellCompDirectiveFilterFileExt)
}

func findings() []cobra.Completion {
	var all []cobra.Completion
	for _, k := range finding.Catalogue() {
		all = append(all, cobra.CompletionWithDesc(k.ID, k.Title))
	}
	return all
}

func checkIDs() []cobra.Completion {
	var all []cobra.Completion
	for _, c := range check.Checks() {
		all = append(all, c.ID)
	}
	return all
}

// resources are the names that the programs' own rules give.
func resources() []cobra.Completion {
	var all []cobra.Completion
	for _, n := range declare.Passthrough().Names() {
		all = append(all, n.Resource)
	}
	return all
}
