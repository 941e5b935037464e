package host

import (
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
