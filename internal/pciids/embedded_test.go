package pciids_test

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/pciids"
)

const file = "pci.ids.gz"

var update = flag.String("update", "", "the path of a pci.ids to embed from now on")

// TestEmbedded reads the file on disk rather than what is compiled in, so that a list that has
// just been renewed is checked as well.
func TestEmbedded(t *testing.T) {
	if *update != "" {
		renew(t, *update)
	}
	text := decompress(t)
	if len(text) < 1<<20 || len(text) > 4<<20 {
		t.Errorf("the list has %d bytes, which is not what such a list has", len(text))
	}
	ids, err := pciids.Parse(strings.NewReader(text))
	must(t, err)
	if ids.Version() == "" {
		t.Error("the list has no version")
	}
	want := readPlainly(text)
	if len(want.odd) > 0 || len(want.twice) > 0 {
		t.Errorf("odd lines: %q; numbers that are there twice: %q", want.odd, want.twice)
	}
	if len(want.vendors) < 2000 || len(want.devices) < 15000 || len(want.subsystems) < 10000 || len(want.classes) < 100 {
		t.Errorf("the list is not whole: %d vendors, %d devices, %d subsystems, %d classes",
			len(want.vendors), len(want.devices), len(want.subsystems), len(want.classes))
	}
	want.compare(t, ids)
}

// renew writes the list anew, the same bytes for the same list: without a time or a name.
func renew(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	ids, err := pciids.Parse(bytes.NewReader(text))
	must(t, err)
	if old := parse(t, decompress(t)); ids.Version() < old.Version() {
		t.Fatalf("%s is of %q, which is older than the list of %s that is there", path, ids.Version(), old.Version())
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	must(t, err)
	_, err = w.Write(text)
	must(t, err)
	must(t, w.Close())
	must(t, os.WriteFile(file, b.Bytes(), 0o644))
}

func decompress(t *testing.T) string {
	t.Helper()
	compressed, err := os.ReadFile(file)
	must(t, err)
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	must(t, err)
	if r.Name != "" || r.Comment != "" || !r.ModTime.IsZero() {
		t.Errorf("%s says where it comes from: %+v", file, r.Header)
	}
	text, err := io.ReadAll(r)
	must(t, err)
	return string(text)
}

// Names are mended from time to time: what is looked for are the parts that a person looks for.
func TestHardware(t *testing.T) {
	ids, err := pciids.Open()
	must(t, err)
	for _, tt := range []struct {
		vendor, device pci.ID
		of, name       string
	}{
		{0x10de, 0x20b2, "NVIDIA", "A100 SXM4 80GB"},
		{0x10de, 0x2330, "NVIDIA", "H100 SXM5"},
		{0x10de, 0x2331, "NVIDIA", "H100 PCIe"},
		{0x15b3, 0x101e, "Mellanox", "Virtual Function"},
		{0x15b3, 0x1021, "Mellanox", "ConnectX-7"},
		{0x15b3, 0xa2dc, "Mellanox", "BlueField-3"},
		{0x8086, 0x1572, "Intel", "X710"},
		{0x8086, 0x1889, "Intel", "Virtual Function"},
		{0x1002, 0x740f, "AMD", "MI210"},
		{0x14e4, 0x1750, "Broadcom", "BCM57508"},
	} {
		if got := ids.Vendor(tt.vendor); !strings.Contains(got, tt.of) {
			t.Errorf("vendor %v: got %q, want %s in it", tt.vendor, got, tt.of)
		}
		if got := ids.Device(tt.vendor, tt.device); !strings.Contains(got, tt.name) {
			t.Errorf("device %v of %v: got %q, want %s in it", tt.device, tt.vendor, got, tt.name)
		}
	}
	for class, want := range map[pci.Class]string{
		0x030200: "3D controller", 0x068000: "Bridge", 0x020000: "Ethernet controller",
		0x020700: "Infiniband controller", 0x010802: "Non-Volatile memory controller", 0x120000: "Processing accelerators",
	} {
		if got := ids.Class(class); got != want {
			t.Errorf("class %v: got %q, want %q", class, got, want)
		}
	}
	if got := ids.Device(0x10de, 0xffff) + ids.Subsystem(0x10de, 0x2330, 0xffff, 0xffff) + ids.Class(0xfe0000); got != "" {
		t.Errorf("what no hardware has is called %q", got)
	}
}

// The license asks that its notice comes with every copy, in source and binary form.
func TestLicense(t *testing.T) {
	onDisk, err := os.ReadFile("LICENSE.pci.ids")
	must(t, err)
	if got := pciids.License(); got != string(onDisk) {
		t.Errorf("the program has another notice than the repository:\n%s", got)
	}
	for _, want := range []string{"Martin Mare", "Albert Pool", "Redistributions in binary form must reproduce", "AS IS"} {
		if !strings.Contains(pciids.License(), want) {
			t.Errorf("the notice lacks %q", want)
		}
	}
	head, _, _ := strings.Cut(decompress(t), "\n0001  ")
	for _, want := range []string{"3-clause BSD License", "Martin Mares and Albert Pool"} {
		if !strings.Contains(head, want) {
			t.Errorf("the list no longer says %q of itself: look whether the notice still fits", want)
		}
	}
}

// One list is read by many: this is for the race detector.
func TestSharedByMany(t *testing.T) {
	ids := parse(t, small)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got := ids.Subsystem(0x10de, 0x2330, 0x10de, 0x16c0); got != "H100" {
				t.Errorf("got %q", got)
			}
		})
	}
	all.Wait()
}

// Programs that name devices have small limits of memory.
func TestOpenIsFrugal(t *testing.T) {
	if held := heldByList(t); held > 2<<20 {
		t.Errorf("the open list holds %d bytes, want 2 MiB at most", held)
	}
}

func heldByList(t testing.TB) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ids, err := pciids.Open()
	must(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(ids)
	return max(after.HeapAlloc, before.HeapAlloc) - before.HeapAlloc
}

func BenchmarkOpen(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, err := pciids.Open()
		must(b, err)
	}
	b.ReportMetric(float64(heldByList(b)), "held-B")
}

func BenchmarkNames(b *testing.B) {
	ids, err := pciids.Open()
	must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		board := ids.Subsystem(0x8086, 0x1572, 0x8086, 0x0000)
		if board == "" || ids.Device(0x8086, 0x1572) == "" || ids.Class(0x020000) == "" {
			b.Fatal("names are lost")
		}
	}
}
