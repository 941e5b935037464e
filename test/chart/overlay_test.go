package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// overlay writes a kustomization into a directory of its own and returns that. Paths in the text are as
// if it were beside this file.
func overlay(t *testing.T, text string) string {
	t.Helper()
	here, err := filepath.Abs(".")
	must(t, err)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	back, err := filepath.Rel(dir, filepath.Join(here, root))
	must(t, err)
	head := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
	text = head + strings.ReplaceAll(text, "- ../../", "- "+filepath.ToSlash(back)+"/")
	must(t, os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600))
	return dir
}
