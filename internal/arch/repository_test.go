package arch

import (
	"os"
	"path/filepath"
	"testing"
)

// repository is the root of the checkout: the directory of the main go.mod.
func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatalf("find the root of the repository: %v", err)
	}
	return root
}
