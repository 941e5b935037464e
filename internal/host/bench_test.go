package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
)

// BenchmarkScan measures a full look and a glance, per device, against the system calls
// that the full look cannot do without, made raw and on ready-made paths. Both are timed
// turn by turn in one run, so the ratio does not depend on what else the machine does.
func BenchmarkScan(b *testing.B) {
	for _, count := range []int{8, 256, 2048} {
		b.Run(fmt.Sprintf("devices=%d", count), func(b *testing.B) {
			src, raw := benchNode(b, count)
			first := src.Look(nil)
			if len(first.Functions) != count {
				b.Fatalf("%d functions", len(first.Functions))
			}
			var look, glance, calls time.Duration
			b.ReportAllocs()
			for b.Loop() {
				begun := time.Now()
				raw.run()
				rawDone := time.Now()
				src.Look(nil)
				lookDone := time.Now()
				src.Glance(first)
				calls += rawDone.Sub(begun)
				look += lookDone.Sub(rawDone)
				glance += time.Since(lookDone)
			}
			per := float64(b.N * count)
			b.ReportMetric(float64(look.Nanoseconds())/per, "look-ns/device")
			b.ReportMetric(float64(glance.Nanoseconds())/per, "glance-ns/device")
			b.ReportMetric(float64(calls.Nanoseconds())/per, "raw-ns/device")
			b.ReportMetric(float64(look)/float64(calls), "look/raw")
			b.ReportMetric(float64(len(raw.calls))/float64(count), "raw-calls/device")
		})
	}
}

// BenchmarkAgain measures the fresh look at one device that an allocation makes.
func BenchmarkAgain(b *testing.B) {
	src, _ := benchNode(b, 2048)
	s := src.Look(nil)
	a := s.Functions[1000].Address
	for b.Loop() {
		if _, ok := src.Again(s, a); !ok {
			b.Fatal("gone")
		}
	}
}

func benchNode(b *testing.B, count int) (host.Source, *rawScan) {
	b.Helper()
	n, _ := simtest.Node(b, sim.Many(count))
	src := simtest.Source(b, n)
	src.Wanted = nvidia
	return src, newRawScan(b, n, n.Roots("bench"))
}

// rawScan is the list of system calls of a scan, with their paths ready for the kernel.
type rawScan struct {
	calls []func()
	buf   [4096]byte
}

func newRawScan(b *testing.B, n *sim.Node, roots host.Roots) *rawScan {
	b.Helper()
	r := &rawScan{}
	r.list(b, roots.VFIODevices())
	r.list(b, filepath.Join(roots.Sys, "class/vfio-dev"))
	r.list(b, filepath.Join(roots.Sys, "bus/pci/devices"))
	for _, f := range n.Functions() {
		dir := filepath.Join(roots.Sys, "devices", f.Path)
		number, bound := n.Cdev(f.Address())
		if !bound { // bridges: enough to see that nobody wants them
			r.link(b, filepath.Join(roots.Sys, "bus/pci/devices", f.Address().String()))
			r.read(b, dir+"/vendor")
			r.read(b, dir+"/class")
			continue
		}
		name := fmt.Sprintf("vfio%d", number)
		r.lstat(b, filepath.Join(roots.VFIODevices(), name))
		r.link(b, filepath.Join(roots.Sys, "class/vfio-dev", name))
		for _, attribute := range []string{"vendor", "device", "class", "revision", "subsystem_vendor", "subsystem_device",
			"numa_node", "vfio-dev/" + name + "/dev"} {
			r.read(b, dir+"/"+attribute)
		}
		for _, link := range []string{"driver", "physfn", "iommu_group", "virtfn0"} {
			r.link(b, dir+"/"+link)
		}
		group, err := os.Readlink(dir + "/iommu_group")
		if err != nil {
			b.Fatal(err)
		}
		r.list(b, filepath.Join(roots.Sys, "kernel/iommu_groups", filepath.Base(group), "devices"))
	}
	return r
}

func (r *rawScan) run() {
	for _, call := range r.calls {
		call()
	}
}

func ready(b *testing.B, path string) uintptr {
	b.Helper()
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = *p }) // keeps it alive
	return uintptr(unsafe.Pointer(p))
}

func (r *rawScan) read(b *testing.B, path string) {
	p, at, buf := ready(b, path), unix.AT_FDCWD, uintptr(unsafe.Pointer(&r.buf[0]))
	r.calls = append(r.calls, func() {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(at), p, unix.O_RDONLY|unix.O_CLOEXEC, 0, 0, 0)
		if errno != 0 {
			return
		}
		_, _, _ = unix.Syscall(unix.SYS_READ, fd, buf, 4096)
		_, _, _ = unix.Syscall(unix.SYS_CLOSE, fd, 0, 0)
	})
}

func (r *rawScan) link(b *testing.B, path string) {
	p, at, buf := ready(b, path), unix.AT_FDCWD, uintptr(unsafe.Pointer(&r.buf[0]))
	r.calls = append(r.calls, func() { _, _, _ = unix.Syscall6(unix.SYS_READLINKAT, uintptr(at), p, buf, 4096, 0, 0) })
}

func (r *rawScan) lstat(b *testing.B, path string) {
	p, at, buf := ready(b, path), unix.AT_FDCWD, uintptr(unsafe.Pointer(&r.buf[0]))
	r.calls = append(r.calls, func() {
		_, _, _ = unix.Syscall6(unix.SYS_NEWFSTATAT, uintptr(at), p, buf, unix.AT_SYMLINK_NOFOLLOW, 0, 0)
	})
}

func (r *rawScan) list(b *testing.B, path string) {
	p, at, buf := ready(b, path), unix.AT_FDCWD, uintptr(unsafe.Pointer(&r.buf[0]))
	r.calls = append(r.calls, func() {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT, uintptr(at), p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0, 0, 0)
		if errno != 0 {
			return
		}
		for {
			n, _, errno := unix.Syscall(unix.SYS_GETDENTS64, fd, buf, 4096)
			if errno != 0 || n == 0 {
				break
			}
		}
		_, _, _ = unix.Syscall(unix.SYS_CLOSE, fd, 0, 0)
	})
}
