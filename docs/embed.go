// Package docs has what a program shows of the documents beside it.
package docs

import (
	_ "embed"
	"strings"
)

//go:embed findings.md
var findings string

// Finding is what the documents say about a finding, in Markdown, or nothing.
func Finding(id string) (text string, ok bool) {
	_, rest, ok := strings.Cut(findings, "\n### "+id+" ")
	if !ok {
		return "", false
	}
	text, _, _ = strings.Cut(rest, "\n### ")
	text, _, _ = strings.Cut(text, "\n## ")
	return id + " " + strings.TrimSpace(text) + "\n", true
}
