package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"kata-device-plugin/internal/docs"
)

// TestLinks: what a document points at is there, and the heading too.
func TestLinks(t *testing.T) {
	anchors := map[string]map[string]bool{}
	for _, p := range pages(t) {
		anchors[p.Name] = p.Anchors()
	}
	links := 0
	for _, p := range pages(t) {
		for _, link := range p.Links() {
			if strings.Contains(link, "://") {
				continue // not looked at: tests ask nobody
			}
			links++
			name, anchor, _ := strings.Cut(link, "#")
			target := p.Name
			if name != "" {
				target = path.Join(path.Dir(p.Name), name)
			}
			if _, err := os.Stat(filepath.Join(top, target)); err != nil {
				t.Errorf("%s: the link %s: %v", p.Name, link, err)
			}
			if anchor != "" && !anchors[target][anchor] {
				t.Errorf("%s: the link %s: there is no such heading", p.Name, link)
			}
		}
	}
	if links < 100 {
		t.Errorf("found only %d links", links)
	}
}

// TestAnchors: headings get the names that GitHub gives them.
func TestAnchors(t *testing.T) {
	p := docs.Page{Text: "# A `b-c` d_e, f: g\n\n## Twice\n\n## Twice\n\n### HST001 why [a link](x.md)?\n\n    # code\n\n```\n# code\n```\n"}
	got := p.Anchors()
	for _, want := range []string{"a-b-c-d_e-f-g", "twice", "twice-1", "hst001-why-a-link"} {
		if !got[want] {
			t.Errorf("no anchor %q in %v", want, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("got %v", got)
	}
}

// TestIndexed: a reader finds every document from the index.
func TestIndexed(t *testing.T) {
	linked := map[string]bool{"docs/README.md": true}
	for _, link := range page(t, "docs/README.md").Links() {
		name, _, _ := strings.Cut(link, "#")
		linked[path.Join("docs", name)] = true
	}
	for _, p := range pages(t) {
		below := strings.HasPrefix(p.Name, "docs/runbooks/") || strings.HasPrefix(p.Name, "docs/decisions/")
		if below && path.Base(p.Name) != "README.md" {
			continue // their directories have indexes of their own
		}
		if !linked[p.Name] {
			t.Errorf("docs/README.md has no link to %s", p.Name)
		}
	}
}
