package host

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func FuzzParseNode(f *testing.F) {
	for _, s := range []string{"0\n", "-1\n", "1\n", "33", "-7\n", "+1\n", "01\n", "-0\n", "", "\n", "x\n", "2147483648\n", "1\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseNode(s)
		text := strings.TrimSuffix(s, "\n")
		switch {
		case n < NoNode, err != nil && n != NoNode:
			t.Errorf("%q is node %d, %v", s, n, err)
		case err == nil && n == NoNode && !strings.HasPrefix(text, "-"):
			t.Errorf("%q is no node", s)
		case err == nil && n != NoNode && strconv.Itoa(int(n)) != text:
			t.Errorf("%q is node %d", s, n)
		}
	})
}

func FuzzParseLink(f *testing.F) {
	for _, s := range []string{"32.0 GT/s PCIe\n", "2.5 GT/s PCIe", "128 GT/s PCIe\n", "Unknown\n", "16\n", "255\n", "9.99 GT/s PCIe", "+8.0 GT/s PCIe", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := strings.TrimSuffix(s, "\n")
		lanes, err := parseLanes(s)
		if err != nil || lanes < 0 || lanes > 32 || lanes > 0 && strconv.Itoa(lanes) != text {
			t.Errorf("%q are %d lanes, %v", s, lanes, err)
		}
		mts, err := parseLinkSpeed(s)
		if err != nil || mts < 0 || mts%100 != 0 || mts > 0 && !strings.HasSuffix(text, " GT/s PCIe") {
			t.Errorf("%q are %d MT/s, %v", s, mts, err)
		}
		if rate, err := strconv.ParseFloat(strings.TrimSuffix(text, " GT/s PCIe"), 64); mts > 0 && (err != nil || int(rate*1000+0.5) != mts) {
			t.Errorf("%q are %d MT/s, not %v GT/s", s, mts, rate)
		}
	})
}

func FuzzCdevName(f *testing.F) {
	for _, s := range []string{
		"vfio0", "vfio10", "noiommu-vfio3", "vfio", "vfio05", "vfio+5", "vfiox", "noiommu-vfio", "noiommu-noiommu-vfio1",
		"vfio1\n", "vfio99999999999", "vfio４",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ok, noIOMMU := cdevName(s)
		if !ok {
			if noIOMMU {
				t.Errorf("%q is no name, but one without IOMMU", s)
			}
			return
		}
		rest := strings.TrimPrefix(s, "noiommu-")
		n, err := strconv.ParseUint(strings.TrimPrefix(rest, "vfio"), 10, 64)
		if err != nil || noIOMMU != (rest != s) || rest != "vfio"+strconv.FormatUint(n, 10) {
			t.Errorf("%q is accepted, with number %d, %v", s, n, err)
		}
	})
}

// FuzzEnter gives any link of the class directory.
func FuzzEnter(f *testing.F) {
	f.Add("vfio0", "../../devices/pci0000:40/0000:40:01.0/0000:41:00.0/vfio-dev/vfio0")
	f.Add("vfio1", "../../devices/virtual/mtty/mtty/83b8f4f2/vfio-dev/vfio1")
	f.Add("vfio0", "../../devices/pci0000:40/0000:41:00.0/vfio-dev/vfio1")
	f.Add("junk", "../../devices/pci0000:40/0000:41:00.0/vfio-dev/junk")
	f.Add("vfio0", "/etc/passwd")
	f.Add("vfio0", "")
	f.Fuzz(func(t *testing.T, name, link string) {
		l := newLook(Source{}, nil, true)
		l.enter(name, link)
		if len(l.cdevs)+len(l.next.Strays) != 1 || l.next.prints[name].link != link {
			t.Fatalf("%q -> %q is %v, and %v", name, link, l.cdevs, l.next.Strays)
		}
		for a, c := range l.cdevs {
			if ok, _ := cdevName(name); !ok || c.name != name || c.path.Address != a ||
				!strings.HasSuffix(link, c.dir+"/vfio-dev/"+name) || !strings.HasPrefix(c.dir, "devices/") {
				t.Errorf("%q -> %q is %v: %+v", name, link, a, c)
			}
		}
	})
}

// FuzzAttributes gives any text to the parsers of single values.
func FuzzAttributes(f *testing.F) {
	for _, s := range []string{"0\n", "1\n", "4294967295\n", "2147483648\n", "07\n", "-1\n", "+1\n", "0xffff\n", "0x7FFF\n", "0x1ffff\n", "mlx5_0\n", "a b\n", "", "\n", "1\n\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := strings.TrimSuffix(s, "\n")
		if n, err := parseNumber(s); err == nil && strconv.FormatUint(uint64(n), 10) != text {
			t.Errorf("%q is the number %d", s, n)
		}
		if n, err := parseInt(s); err == nil && (n < 0 || strconv.Itoa(n) != text) || err != nil && n != 0 {
			t.Errorf("%q is %d, %v", s, n, err)
		}
		if n, err := parseIndex(s); err == nil && (n <= 0 || strconv.Itoa(n) != text) {
			t.Errorf("%q is interface %d", s, n)
		}
		if n, err := parseACPIIndex(s); (err == nil) != (n != nil) {
			t.Errorf("%q is %v, %v", s, n, err)
		}
		if k, err := parsePKey(s); (err == nil) != (k != nil) || k != nil && fmt.Sprintf("0x%04x", *k) != text {
			t.Errorf("%q is key %v, %v", s, k, err)
		}
		if w, err := parseText(s); err == nil && (w == "" || w != text || strings.ContainsAny(w, " \t\n\x00")) {
			t.Errorf("%q is %q", s, w)
		}
	})
}

// FuzzNames gives any name to what tells entries apart by theirs.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"mlx5_core.sf.4", "mlx5_core.eth.0", "sf.1", ".sf.1", "a.sf.01", "a.b.sf.2", "uverbs0", "umad12", "issm1", "ucm3", "uverbs", "uverbsx", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if isSubfunction(s) {
			parts := strings.Split(s, ".")
			if len(parts) < 3 || parts[len(parts)-2] != "sf" || !isNumber(parts[len(parts)-1]) {
				t.Errorf("%q is a subfunction", s)
			}
		}
		if isNumber(s) {
			if n, err := strconv.ParseUint(s, 10, 32); err != nil || strconv.FormatUint(n, 10) != s {
				t.Errorf("%q is a number", s)
			}
		}
		var d RDMADevice
		if list := d.list(s); list != nil && !strings.ContainsAny(s[:1], "ui") {
			t.Errorf("%q is a node", s)
		}
	})
}

// FuzzLinks has any links, with circles, and any routes: the walk ends, and what is in use
// is reached from a route.
func FuzzLinks(f *testing.F) {
	f.Add([]byte{1, 2, 0, 1, 2, 1, 0, 0, 3, 1, 2, 2})
	f.Fuzz(func(t *testing.T, data []byte) {
		links := &Links{Links: map[int]Link{}}
		for ; len(data) >= 4; data = data[4:] {
			kind := []string{"", "bond", "openvswitch"}[data[3]%3]
			index := int(data[0] % 8)
			links.Links[index] = Link{Index: index, Master: int(data[1] % 8), Lower: int(data[2] % 8), Kind: kind}
			links.Defaults = append(links.Defaults, Default{Index: index})
		}
		below := links.below()
		for _, d := range links.Defaults {
			seen := map[int]bool{}
			for _, index := range below.reach(d.Index) {
				if seen[index] {
					t.Errorf("%d is reached twice from %d", index, d.Index)
				}
				seen[index] = true
			}
			if !seen[d.Index] {
				t.Errorf("%d does not reach itself", d.Index)
			}
		}
	})
}
