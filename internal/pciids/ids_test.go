package pciids_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/pciids"
)

// small has every kind of line, and numbers that are the same at different places.
const small = `#
#	List of PCI ID's
#	Version: 2026.01.02
#	Version: 2027.01.02

10de  NVIDIA Corporation
	2330  GH100 [H100 SXM5 80GB]
# a comment ends nothing
		10de 16c0  H100

		10de 16c1  H100 of a test
	2331  GH100 [H100 PCIe]
8086  Intel Corporation
	2330  DH89xxCC SMBus Controller
		10de 16c1  A board of Intel
15cf  Hilscher Gesellschaft für Systemautomation mbH
C 03  Display controller
	00  VGA compatible controller
		00  VGA controller
	02  3D controller
C 40  Coprocessor
`

func parse(t testing.TB, text string) *pciids.IDs {
	t.Helper()
	ids, err := pciids.Parse(strings.NewReader(text))
	must(t, err)
	return ids
}

func TestNames(t *testing.T) {
	ids := parse(t, small)
	for _, tt := range []struct{ what, got, want string }{
		{"version", ids.Version(), "2026.01.02"},
		{"vendor", ids.Vendor(0x10de), "NVIDIA Corporation"},
		{"vendor out of order", ids.Vendor(0x15cf), "Hilscher Gesellschaft für Systemautomation mbH"},
		{"vendor after it", ids.Vendor(0x8086), "Intel Corporation"},
		{"no such vendor", ids.Vendor(0x2330), ""},
		{"device", ids.Device(0x10de, 0x2330), "GH100 [H100 SXM5 80GB]"},
		{"device without subsystems", ids.Device(0x10de, 0x2331), "GH100 [H100 PCIe]"},
		{"same number, other vendor", ids.Device(0x8086, 0x2330), "DH89xxCC SMBus Controller"},
		{"no such device", ids.Device(0x8086, 0x2331), ""},
		{"device of no vendor", ids.Device(0, 0x2330), ""},
		{"subsystem", ids.Subsystem(0x10de, 0x2330, 0x10de, 0x16c0), "H100"},
		{"subsystem after a blank line", ids.Subsystem(0x10de, 0x2330, 0x10de, 0x16c1), "H100 of a test"},
		{"same subsystem, other vendor", ids.Subsystem(0x8086, 0x2330, 0x10de, 0x16c1), "A board of Intel"},
		{"subsystem of the device before", ids.Subsystem(0x10de, 0x2331, 0x10de, 0x16c1), ""},
		{"no such subsystem", ids.Subsystem(0x10de, 0x2330, 0x16c1, 0x10de), ""},
		{"subsystem of no device", ids.Subsystem(0x10de, 0x2332, 0x10de, 0x16c1), ""},
		{"class", ids.Class(0x030200), "3D controller"},
		{"class with an interface", ids.Class(0x030001), "VGA compatible controller"},
		{"class without a subclass", ids.Class(0x038000), "Display controller"},
		{"base class alone", ids.Class(0x400000), "Coprocessor"},
		{"no such class", ids.Class(0x020000), ""},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.what, tt.got, tt.want)
		}
	}
}

func TestVersionIsADate(t *testing.T) {
	for text, want := range map[string]string{
		"#\tVersion: 2026.01.02\n":   "2026.01.02",
		"#\tVersion: 2026.01.02":     "2026.01.02",
		"":                           "",
		"#\tVersion:\n":              "",
		"#\tVersion: \x1b[31m2026\n": "",
		"#\tVersion: 2026.13.02\n":   "",
		"# Version: 2026.01.02\n":    "",
		"#\tVersion: soon\n#\tVersion: 2026.01.02\n":      "2026.01.02",
		"#\tDate:    2026-01-02 03:04:05\n#\n#\tVersion:": "",
	} {
		if got := parse(t, "10de  NVIDIA Corporation\n"+text).Version(); got != want {
			t.Errorf("%q: got version %q, want %q", text, got, want)
		}
	}
}

// What can be read holds, and nothing goes to a wrong parent.
func TestOddLines(t *testing.T) {
	const (
		top      = `"10de  Name of a vendor" or "C 03  Name of a class"`
		device   = `a tab and "2330  Name of a device"`
		subclass = `a tab and "02  Name of a subclass"`
		inter    = `two tabs and "00  Name of a programming interface"`
		board    = `two tabs and "10de 16c1  Name of a subsystem"`
		lone     = "a vendor or a class above it"
		orphan   = "a device or a subclass above it"
	)
	for _, tt := range []struct {
		what, text, want string
		line, count      int
	}{
		{"device first", "\t2330  H100\n10de  NVIDIA\n", lone, 1, 1},
		{"subsystem first", "\t\t10de 16c1  H100\n10de  NVIDIA\n", orphan, 1, 1},
		{"subsystem below a vendor", "10de  NVIDIA\n\t\t10de 16c1  H100\n", orphan, 2, 1},
		{"subsystem below the next vendor", "8086  Intel\n\t2330  SMBus\n10de  NVIDIA\n\t\t10de 16c1  H100\n", orphan, 4, 1},
		{"no digit", "10de  NVIDIA\n\t233g  H100\n\t233:  H100\n\t233/  H100\n\t233`  H100\n", device, 2, 4},
		{"lost character", "10de  NVIDIA\n\t2331  f\ufffdr\n", device, 2, 1},
		{"vendor in capitals", "10de  NVIDIA\n10DE  NVIDIA\n\t2331  H100\n\t\t10de 16c1  H100\n", top, 2, 3},
		{"short number", "10de  NVIDIA\n\t233  H100\n\t\t10de 16c1  H100\n", device, 2, 2},
		{"board of an odd device", "10de  NVIDIA\n\t2330  H100\n\t2331 H100\n\t\t10de 16c1  H100\n", device, 3, 2},
		{"long number", "10de  NVIDIA\n\t02331  H100\n", device, 2, 1},
		{"one space", "10de  NVIDIA\n\t2331 H100\n", device, 2, 1},
		{"three spaces", "10de  NVIDIA\n\t2331   H100\n", device, 2, 1},
		{"space at the end", "10de  NVIDIA\n\t2331  H100 \n", device, 2, 1},
		{"no name", "10de  NVIDIA\n\t2331\n\t2331  \n", device, 2, 2},
		{"number alone", "10de  NVIDIA\n\t23", device, 2, 1},
		{"escape sequence", "10de  NVIDIA\n\t2331  \x1b[31mH100\n", device, 2, 1},
		{"line ends of DOS", "10de  NVIDIA\n\t2331  H100\r\n", device, 2, 1},
		{"not UTF-8", "10de  NVIDIA\n\t2331  f\xfcr\n", device, 2, 1},
		{"right to left", "10de  NVIDIA\n\t2331  \u202eH100\n", device, 2, 1},
		{"subsystem with a tab", "10de  NVIDIA\n\t2330  H100\n\t\t10de\t16c1  H100\n", board, 3, 1},
		{"half a subsystem", "10de  NVIDIA\n\t2330  H100\n\t\t10de  H100\n", board, 3, 1},
		{"three tabs", "10de  NVIDIA\n\t2330  H100\n\t\t\t10de 16c1  H100\n", board, 3, 1},
		{"indented comment", "10de  NVIDIA\n\t# H100\n", device, 2, 1},
		{"another section", "10de  NVIDIA\nHID 21  HID\n\t2331  H100\n", top, 2, 2},
		{"class without C", "10de  NVIDIA\n03  Display controller\n\t02  3D controller\n", top, 2, 2},
		{"device below a class", "10de  NVIDIA\nC 04  Multimedia\n\t2331  H100\n", subclass, 3, 1},
		{"subsystem below a subclass", "10de  NVIDIA\nC 04  Multimedia\n\t02  Telephony\n\t\t10de 16c1  H100\n",
			inter, 4, 1},
		{"a long line", "10de  NVIDIA\n" + strings.Repeat("x", 100), top, 2, 1},
	} {
		ids, err := pciids.Parse(strings.NewReader(tt.text))
		odd, ok := errors.AsType[*pciids.OddLinesError](err)
		if !ok || ids == nil {
			t.Errorf("%s: got %v, %v", tt.what, ids, err)
			continue
		}
		text := strings.Split(tt.text, "\n")[tt.line-1]
		want := pciids.OddLinesError{Count: tt.count, Line: tt.line, Text: text[:min(len(text), 80)], Want: tt.want}
		if diff := cmp.Diff(want, *odd); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.what, diff)
		}
		if name := ids.Vendor(0x10de); name != "NVIDIA" {
			t.Errorf("%s: the vendor is lost: %q", tt.what, name)
		}
		name := ids.Device(0x10de, 0x2331) + ids.Subsystem(0x10de, 0x2330, 0x10de, 0x16c1) + ids.Class(0x030200)
		if name != "" {
			t.Errorf("%s: a name out of nowhere: %q", tt.what, name)
		}
	}
}

func TestOddLinesErrorSaysWhereAndWhat(t *testing.T) {
	_, err := pciids.Parse(strings.NewReader("10de  NVIDIA\n\n\t2330 H100\n\t2331 H100\n"))
	const want = `list of PCI IDs: line 3: "\t2330 H100": want a tab and "2330  Name of a device"; ` +
		`odd lines: 2; mend them, or name a newer file pci.ids`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Of two entries with one number the first one holds, with what is below it.
func TestTwice(t *testing.T) {
	ids := parse(t, "10de  First\n\t2330  First\n\t\t10de 16c1  First\n"+
		"\t2330  Second\n\t\t10de 16c1  Second\n\t\t10de 16c2  Second\n"+
		"0001  Low\n10de  Second\n\t2331  Below the second\nC 03  First\nC 03  Second\n")
	for what, got := range map[string]string{
		"vendor": ids.Vendor(0x10de), "device": ids.Device(0x10de, 0x2330),
		"subsystem": ids.Subsystem(0x10de, 0x2330, 0x10de, 0x16c1), "class": ids.Class(0x030000),
	} {
		if got != "First" {
			t.Errorf("%s: got %q", what, got)
		}
	}
	if got := ids.Subsystem(0x10de, 0x2330, 0x10de, 0x16c2); got != "" {
		t.Errorf("subsystem of the second device: got %q", got)
	}
	if got := ids.Device(0x10de, 0x2331); got != "Below the second" {
		t.Errorf("device below the second vendor: got %q", got)
	}
}

func TestNoList(t *testing.T) {
	const noVendor = "list of PCI IDs: it has no vendor: name a file pci.ids that is not compressed"
	gone := errors.New("gone")
	for _, tt := range []struct {
		what string
		r    io.Reader
		want string
	}{
		{"empty", strings.NewReader(""), noVendor},
		{"compressed", strings.NewReader("\x1f\x8b\x08\x00"), noVendor},
		{"a page", strings.NewReader("<html>\n</html>\n"), noVendor},
		{"too large", io.LimitReader(comments{}, 16<<20+1),
			"read a list of PCI IDs: it has more than 16 MiB: name a file pci.ids, which has less than 2"},
		{"unreadable", io.MultiReader(strings.NewReader(small), iotest.ErrReader(gone)), "read a list of PCI IDs: gone"},
	} {
		ids, err := pciids.Parse(tt.r)
		if ids != nil || err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, %v\nwant %s", tt.what, ids, err, tt.want)
		}
	}
	large := io.MultiReader(strings.NewReader(small), io.LimitReader(comments{}, int64(16<<20-len(small))))
	ids, err := pciids.Parse(large)
	must(t, err)
	if got := ids.Vendor(0x10de); got == "" {
		t.Error("16 MiB are read, but the vendor is lost")
	}
}

// comments is a list of nothing else, without an end.
type comments struct{}

func (comments) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '#'
	}
	return len(b), nil
}

func FuzzParse(f *testing.F) {
	f.Add(small)
	f.Add("10de  NVIDIA\n\t2330 H100\n\t\t10de 16c1  H100\n")
	f.Add("10de  A\n\t2330  B\n\t\t10de 16c1  C\n\t2330  D\n\t\t10de 16c1  E\n" +
		"10de  F\n\t0001  G\nC 03  H\n\t02  I\n\t\t00  J\n")
	f.Add("8086  A\n\t2330  B\n10de  C\n\t\t10de 16c1  D\n")
	f.Add("ffff  \u00a0\n\xff\r\n#\tVersion: 2026.01.02")
	f.Fuzz(func(t *testing.T, text string) {
		want := readPlainly(text)
		got, err := pciids.Parse(strings.NewReader(text))
		if got == nil {
			if err == nil || len(want.vendors) > 0 {
				t.Fatalf("there is no list but %d vendors, and error %v", len(want.vendors), err)
			}
			return
		}
		var count int
		if odd, ok := errors.AsType[*pciids.OddLinesError](err); ok {
			count = odd.Count
		} else if err != nil {
			t.Fatal(err)
		}
		if count != len(want.odd) {
			t.Errorf("%d odd lines, want %q", count, want.odd)
		}
		want.compare(t, got)
		for v := range want.vendors {
			for _, id := range []pci.ID{0, 1, 0x2330, 0xffff} {
				if _, there := want.devices[[2]pci.ID{v, id}]; !there && got.Device(v, id) != "" {
					t.Errorf("device %v of %v out of nowhere: %q", id, v, got.Device(v, id))
				}
				if _, there := want.subsystems[[4]pci.ID{v, id, v, id}]; !there && got.Subsystem(v, id, v, id) != "" {
					t.Errorf("subsystem %v of %v out of nowhere: %q", id, v, got.Subsystem(v, id, v, id))
				}
			}
		}
	})
}
