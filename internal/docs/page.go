package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Page is one document.
type Page struct {
	Name string // its path below the root of the repository
	Text string
}

// Block is a piece of code in a page.
type Block struct {
	Line int    // of its first line, from 1
	Lang string // what its fence names, such as console; "" for none
	// Fenced blocks stand between two fences. Others are indented.
	Fenced bool
	Lines  []string // without the indentation
}

// Span is a piece of code in a line of text.
type Span struct{ Where, Text string }

// Pages reads every document that is for readers of the repository: those at its root and below docs.
func Pages(root string) ([]Page, error) {
	names, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		return nil, fmt.Errorf("list the documents: %w", err)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && filepath.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the documents: %w", err)
	}
	pages := make([]Page, len(names))
	for i, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read a document: %w", err)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return nil, fmt.Errorf("name a document: %w", err)
		}
		pages[i] = Page{Name: filepath.ToSlash(rel), Text: string(text)}
	}
	return pages, nil
}

// Links are the targets of the page's links, in the order of the text. What code looks like is none.
func (p Page) Links() []string {
	prose := regexp.MustCompile("`[^`\n]*`").ReplaceAllString(p.prose(), "")
	var all []string
	for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose, -1) {
		all = append(all, m[1])
	}
	return all
}

// Anchors are the names that links can have behind a number sign: GitHub makes one of each heading,
// and counts those that are alike.
func (p Page) Anchors() map[string]bool {
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.+?) *$`).FindAllStringSubmatch(p.prose(), -1) {
		name := anchor(m[1])
		for n := 1; all[name]; n++ {
			name = fmt.Sprintf("%s-%d", anchor(m[1]), n)
		}
		all[name] = true
	}
	return all
}

func anchor(heading string) string {
	heading = regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(heading, "")
	heading = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(heading), "")
	return strings.ReplaceAll(heading, " ", "-")
}

// Spans are the pieces of code within the text, each with its page and line.
func (p Page) Spans() []Span {
	var all []Span
	for i, line := range strings.Split(p.prose(), "\n") {
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(line, -1) {
			all = append(all, Span{Where: fmt.Sprintf("%s:%d", p.Name, i+1), Text: m[1]})
		}
	}
	return all
}

// prose is the page without its blocks of code. Lines stay where they are.
func (p Page) prose() string {
	lines := strings.Split(p.Text, "\n")
	for _, b := range p.Blocks() {
		for i := range b.Lines {
			lines[b.Line-1+i] = ""
		}
	}
	return strings.Join(lines, "\n")
}
