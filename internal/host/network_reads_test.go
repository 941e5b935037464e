package host_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sysfs"
)

// TestNetworkReadsNothingElse puts a named pipe, which nobody writes to, in place of every
// attribute that a look has no business with, as TestReadsNothingElse does: sriov_numvfs
// takes the lock of the device, and much of an interface takes the RTNL, or asks the firmware.
func TestNetworkReadsNothingElse(t *testing.T) {
	r, _ := manyAdapters(t)
	before := r.src.Look(nil)
	read := []string{
		"vendor", "device", "class", "revision", "subsystem_vendor", "subsystem_device", "numa_node", "dev", "ibdev",
		"ifindex", "type", "link_layer", "sfnum", "sriov_totalvfs", "acpi_index",
	}
	replaced := 0
	for _, f := range r.Functions() {
		if f.Class>>16 == 0x06 {
			continue
		}
		must(t, filepath.WalkDir(filepath.Join(r.roots.Sys, "devices", f.Path), func(path string, e fs.DirEntry, err error) error {
			must(t, err)
			several := strings.Contains(path, nicPF+"/net/") && strings.HasPrefix(e.Name(), "phys_")
			ib := strings.HasSuffix(path, "mlx5_1/ports/1/pkeys/0")
			if !e.Type().IsRegular() || slices.Contains(read, e.Name()) || several || ib {
				return nil
			}
			replaced++
			must(t, os.Remove(path), unix.Mkfifo(path, 0o644))
			return nil
		}))
	}
	if replaced < 100 {
		t.Fatalf("replaced only %d attributes", replaced)
	}
	done := make(chan *host.Snapshot, 1)
	go func() {
		s := r.src.Look(before)
		for _, f := range s.Functions {
			r.src.Again(s, f.Address)
		}
		done <- s
	}()
	select {
	case s := <-done:
		same(t, "facts", s, before)
	case <-time.After(10 * time.Second):
		t.Fatal("a look reads an attribute that it need not")
	}
}

// notedFS notes what is read.
type notedFS struct {
	*sysfs.FS
	read []string
}

func (n *notedFS) ReadFile(name string) ([]byte, error) {
	n.read = append(n.read, name)
	return n.FS.ReadFile(name)
}

func (n *notedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n.read = append(n.read, name)
	return n.FS.ReadDir(name)
}

func (n *notedFS) ReadLink(name string) (string, error) {
	n.read = append(n.read, name)
	return n.FS.ReadLink(name)
}

// TestAgainReadsOne: a fresh look at one function reads that one, its group, and whatever has
// one name for the whole machine.
func TestAgainReadsOne(t *testing.T) {
	r, faults := manyAdapters(t)
	s := r.src.Look(nil)
	noted := &notedFS{FS: faults.FS}
	r.src.Sys = noted
	for _, f := range s.Functions {
		noted.read = nil
		if _, ok := r.src.Again(s, f.Address); !ok {
			t.Errorf("%s is gone", f.Address)
		}
		group := "-"
		if f.Group != nil {
			group = f.Group.Number
		}
		for _, name := range noted.read {
			switch {
			case strings.Contains(name, f.Address.String()), strings.HasPrefix(name, "kernel/iommu_groups/"+group+"/"):
			case strings.HasPrefix(name, "class/vfio-dev/"), name == "class/vfio/"+group+"/dev", name == "bus/vdpa/devices":
			default:
				t.Errorf("for %s it reads %s", f.Address, name)
			}
		}
		if len(noted.read) > 80 {
			t.Errorf("%s takes %d reads", f.Address, len(noted.read))
		}
	}
}
