package host_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
)

// TestReadsNothingElse puts a named pipe, which nobody writes to, in place of every
// attribute that a look has no business with. Some attributes take the function's device
// lock, which an unbind holds until a VM lets go of the device: to read one would hang
// just as the pipe does. sriov_numvfs is such a one.
func TestReadsNothingElse(t *testing.T) {
	pf := sriov()
	r := newRig(t, pf)
	a := addr(t, gpuA)
	must(t, r.SetVFs(a, 2, ""))
	dir := filepath.Join(r.roots.Sys, "devices", pf.Path)
	entries, err := os.ReadDir(dir)
	must(t, err)
	replaced := 0
	for _, e := range entries {
		read := []string{"vendor", "device", "class", "revision", "subsystem_vendor", "subsystem_device", "numa_node"}
		if !e.Type().IsRegular() || slices.Contains(read, e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		must(t, os.Remove(path), unix.Mkfifo(path, 0o644))
		replaced++
	}
	if replaced < 5 {
		t.Fatalf("replaced only %d attributes", replaced)
	}
	done := make(chan host.Function, 1)
	go func() {
		s := r.src.Look(nil)
		r.src.Glance(s)
		f, _ := r.src.Again(s, a)
		done <- f
	}()
	select {
	case f := <-done:
		if len(f.VFs) != 2 || f.Err != nil {
			t.Errorf("%+v", f)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a look reads an attribute that it need not")
	}
}
