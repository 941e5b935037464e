package nodelock_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"kata-device-plugin/internal/nodelock"
)

// TestKept: one holder at a time, the next one when the first has ended, or when the file was
// removed; and nil needs nothing.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	a, b := nodelock.NewKept(dir, "publish", "a"), nodelock.NewKept(dir, "publish", "b")
	expect := func(of *nodelock.Kept, fresh, held bool) {
		t.Helper()
		now, err := of.Take()
		if now != fresh || errors.Is(err, nodelock.ErrHeld) == held || held && err != nil || of.Held() != held {
			t.Errorf("fresh %v, held %v, %v; want %v, %v", now, of.Held(), err, fresh, held)
		}
	}
	expect(a, true, true)
	expect(b, false, false)
	expect(a, false, true)
	for range 2 {
		if err := a.Release(); err != nil {
			t.Error(err)
		}
	}
	expect(b, true, true)
	expect(a, false, false)
	if err := os.Remove(filepath.Join(dir, nodelock.FileName("publish"))); err != nil {
		t.Fatal(err)
	}
	expect(a, true, true)
	expect(b, false, false)
	c, d := nodelock.NewKeptShared(dir, "other", "c"), nodelock.NewKeptShared(dir, "other", "d")
	expect(c, true, true)
	expect(d, true, true)
	expect(nodelock.NewKept(dir, "other", "e"), false, false)
	var none *nodelock.Kept
	if fresh, err := none.Take(); fresh || err != nil || none.Taken() || none.Held() || none.Release() != nil {
		t.Errorf("nobody needs it: %v, %v", fresh, err)
	}
}
