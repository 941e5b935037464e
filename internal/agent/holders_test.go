package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"kata-device-plugin/internal/declare"
)

// TestHoldersAfterGrant: whoever was told of a grant is never told of holders without it after
// that, however much happens at the same time.
func TestHoldersAfterGrant(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"))
	var mu sync.Mutex
	granted := map[string]bool{}
	told := 0
	aside := filepath.Join(t.TempDir(), "record")
	n.prog.Granted = func(_ declare.Rules, _ string, devices []*declare.Device) error {
		mu.Lock()
		for _, d := range devices {
			granted[d.ID] = true
		}
		mu.Unlock()
		for i := range 200 { // it takes its time, as whoever writes files does
			if err := os.WriteFile(aside, fmt.Append(nil, devices[0].ID, i), 0o600); err != nil {
				return err
			}
		}
		return nil
	}
	n.prog.Holders = func(_ declare.Rules, _ []declare.Resource, held map[string][]string) error {
		mu.Lock()
		defer mu.Unlock()
		told++
		for id := range granted {
			if !slices.Contains(held[gpu], id) {
				t.Errorf("%s was granted, and is not among %v", id, held[gpu])
			}
		}
		return nil
	}
	n.Start()
	n.run(t, func(a *Agent) { a.times.Quiet, a.times.Most = 0, 0 })
	n.awaitAll()
	ours := map[string][]string{gpu: n.Bound(0x0302), nvswitch: n.Bound(0x0680)}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				n.checkpoint(ours) // each is an event
			}
		}
	}()
	for enough := false; !enough; { // a busy machine looks more seldom
		for _, id := range n.Healthy(gpu) {
			if _, err := n.Allocate(gpu, id); err != nil {
				t.Error(err)
			}
		}
		mu.Lock()
		enough = told >= 20
		mu.Unlock()
	}
	close(stop)
	<-done
}
