//go:build !kubernetes134

package plane

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Backup is all that a cluster stored at one moment.
type Backup struct{ entries []entry }

// Backup takes one, while everything runs.
func (p *Plane) Backup(t testing.TB) Backup {
	t.Helper()
	entries, err := dump(t.Context(), p.store)
	if err != nil {
		t.Fatalf("back up the control plane: %v", err)
	}
	return Backup{entries}
}

// Restore puts a control plane in the place of this one that knows what a backup knows, at
// the same address. Resource versions begin anew, so to a client that stays they go
// backwards, as they do after a real restore. The scheduler and the controllers are started
// anew; kubelets and drivers go on with what they believe.
func (p *Plane) Restore(t testing.TB, b Backup) {
	t.Helper()
	p.Cut()
	p.halt()
	data, err := os.MkdirTemp(p.dir, "restored")
	if err != nil {
		t.Fatalf("make a directory for etcd: %v", err)
	}
	if err := p.run(filepath.Join(data, "etcd"), b.entries); err != nil {
		t.Fatalf("start the control plane from a backup: %v", err)
	}
}

// String says how much it is.
func (b Backup) String() string { return fmt.Sprintf("backup of %d objects", len(b.entries)) }
