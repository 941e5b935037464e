package docs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Command is one command of a script: a program and its arguments, as a shell would hand them over.
// What a shell would have to compute, such as a substitution, is left as it is written.
type Command struct {
	Where string // page and line, for messages
	Args  []string
}

// Step is what a reader types at a prompt, and what is printed then.
type Step struct{ Script, Output string }

// Script is the text that a shell would be given, and whether the block is one: what is indented, and
// what a fence calls sh or console. In a console a line with a prompt is typed, others are printed.
func (b Block) Script() (string, bool) {
	switch {
	case !b.Fenced, b.Lang == "sh":
		return strings.Join(b.Lines, "\n") + "\n", true
	case b.Lang == "console":
		var script strings.Builder
		for _, s := range b.Steps() {
			script.WriteString(s.Script + "\n")
		}
		return script.String(), true
	}
	return "", false
}

// Steps are those of a console. A line that ends with a backslash is continued by the next one.
func (b Block) Steps() []Step {
	var all []Step
	for _, line := range b.Lines {
		typed, isTyped := strings.CutPrefix(line, "$ ")
		last := len(all) - 1
		switch {
		case isTyped:
			all = append(all, Step{Script: typed})
		case last < 0:
		case all[last].Output == "" && strings.HasSuffix(all[last].Script, "\\"):
			all[last].Script += "\n" + line
		default:
			all[last].Output += line + "\n"
		}
	}
	return all
}

// Commands are all commands of a page. Each is found, in pipelines and loops too. An indented block may be
// something else than a script: other tells by its first line.
func (p Page) Commands(other func(string) bool) ([]Command, error) {
	var all []Command
	for _, b := range p.Blocks() {
		script, ok := b.Script()
		if !ok || len(b.Lines) > 0 && other(b.Lines[0]) {
			continue
		}
		commands, err := Parse(fmt.Sprintf("%s:%d", p.Name, b.Line), script)
		if err != nil {
			return nil, err
		}
		all = append(all, commands...)
	}
	return all, nil
}

// Parse finds the commands of a script for bash.
func Parse(where, script string) ([]Command, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, fmt.Errorf("read the script at %s: %w", where, err)
	}
	var all []Command
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		c := Command{Where: where}
		for _, word := range call.Args {
			c.Args = append(c.Args, literal(word))
		}
		c.Args = slices.Clip(withoutSudo(c.Args))
		all = append(all, c)
		return true
	})
	return all, nil
}

func withoutSudo(args []string) []string {
	if len(args) > 1 && args[0] == "sudo" {
		return args[1:]
	}
	return args
}

func literal(word *syntax.Word) string {
	if text, err := expand.Literal(nil, word); err == nil {
		return text
	}
	var source bytes.Buffer
	if err := syntax.NewPrinter().Print(&source, word); err != nil {
		return ""
	}
	return source.String()
}
