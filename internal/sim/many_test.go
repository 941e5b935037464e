package sim

import (
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkNew lays out the largest machine of the benchmarks.
func BenchmarkNew(b *testing.B) {
	p := Many(2048)
	dir, err := TempDir()
	must(b, err)
	b.Cleanup(func() { must(b, os.RemoveAll(dir)) })
	for b.Loop() {
		_, err := New(filepath.Join(dir, "node"), p)
		must(b, err)
		b.StopTimer()
		must(b, os.RemoveAll(filepath.Join(dir, "node")))
		b.StartTimer()
	}
}
