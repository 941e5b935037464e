package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"kata-device-plugin/internal/docs"
)

// TestIssueForms: each form asks for a snapshot, by a command that there is, and is one that GitHub takes.
func TestIssueForms(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(top, ".github/ISSUE_TEMPLATE/*.yml"))
	must(t, err)
	forms := 0
	for _, file := range files {
		name := filepath.Base(file)
		text, err := os.ReadFile(file)
		must(t, err)
		if name == "config.yml" {
			continue
		}
		forms++
		var form struct {
			Name        string   `json:"name"`
			Description string   `json:"description"`
			Labels      []string `json:"labels"`
			Body        []struct {
				Type        string         `json:"type"`
				ID          string         `json:"id"`
				Attributes  map[string]any `json:"attributes"`
				Validations map[string]any `json:"validations"`
			} `json:"body"`
		}
		must(t, yaml.UnmarshalStrict(text, &form))
		if form.Name == "" || form.Description == "" || len(form.Body) == 0 {
			t.Errorf("%s has no name, description or body", name)
		}
		if !strings.Contains(string(text), "`sudo kubectl device snapshot -o node.snapshot`") {
			t.Errorf("%s does not ask for a snapshot", name)
		}
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(text), -1) {
			if !typed(m[1]) {
				continue
			}
			commands, err := docs.Parse(name, m[1])
			must(t, err)
			for _, c := range commands {
				if err := right(c); err != nil {
					t.Errorf("%s: %q: %v", name, c.Args, err)
				}
			}
		}
	}
	if forms < 3 {
		t.Errorf("found only %d forms", forms)
	}
}
