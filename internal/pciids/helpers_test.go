package pciids_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/pciids"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plain is the form of the list read a second time in the plainest way, with maps and regular
// expressions, to compare with.
type plain struct {
	vendors    map[pci.ID]string
	devices    map[[2]pci.ID]string
	subsystems map[[4]pci.ID]string
	bases      map[pci.ID]string
	classes    map[[2]pci.ID]string
	odd, twice []string
}

func readPlainly(text string) *plain {
	p := &plain{
		vendors: map[pci.ID]string{}, devices: map[[2]pci.ID]string{}, subsystems: map[[4]pci.ID]string{},
		bases: map[pci.ID]string{}, classes: map[[2]pci.ID]string{},
	}
	form := regexp.MustCompile(`^(C |\t|\t\t)?([0-9a-f]{4} [0-9a-f]{4}|[0-9a-f]{4}|[0-9a-f]{2})  (.*)$`)
	// in is "v" below a vendor, "d" below a device, "s" below a device that was there before,
	// "c" and "p" below a base class and a class.
	var in string
	var top, inner pci.ID
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		m := form.FindStringSubmatch(line)
		if m == nil || !shown(m[3]) {
			m = []string{"", "odd", "", ""}
		}
		indent, name := m[1], m[3]
		n, width := ids(m[2]), len(m[2])
		switch {
		case indent == "" && width == 4:
			in, top = "v", n[0]
			add(p, p.vendors, top, name, line)
		case indent == "C " && width == 2:
			in, top = "c", n[0]
			add(p, p.bases, top, name, line)
		case indent == "\t" && width == 4 && slices.Contains([]string{"v", "d", "s"}, in):
			in, inner = "d", n[0]
			if !add(p, p.devices, [2]pci.ID{top, inner}, name, line) {
				in = "s"
			}
		case indent == "\t" && width == 2 && slices.Contains([]string{"c", "p"}, in):
			in = "p"
			add(p, p.classes, [2]pci.ID{top, n[0]}, name, line)
		case indent == "\t\t" && width == 9 && in == "d":
			add(p, p.subsystems, [4]pci.ID{top, inner, n[0], n[1]}, name, line)
		case indent == "\t\t" && (width == 9 && in == "s" || width == 2 && in == "p"):
		default:
			p.odd = append(p.odd, line)
			in = p.after(line, in)
		}
	}
	return p
}

// after says what a line can be below when an odd line stands above it.
func (p *plain) after(line, in string) string {
	switch {
	case strings.HasPrefix(line, "\t\t"):
		return in
	case !strings.HasPrefix(line, "\t") || in == "":
		return ""
	case slices.Contains([]string{"v", "d", "s"}, in):
		return "v"
	}
	return "c"
}

func add[K comparable](p *plain, to map[K]string, key K, name, line string) bool {
	if _, there := to[key]; there {
		p.twice = append(p.twice, line)
		return false
	}
	to[key] = name
	return true
}

func ids(s string) (n []pci.ID) {
	for f := range strings.FieldsSeq(s) {
		id, _ := pci.ParseID("0x" + strings.Repeat("0", 4-len(f)) + f)
		n = append(n, id)
	}
	return append(n, 0)
}

func shown(name string) bool {
	return name != "" && name == strings.TrimSpace(name) && utf8.ValidString(name) && !strings.Contains(name, "\uFFFD") &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) && r != '\u00a0' })
}

// compare asks for every name that the text has.
func (p *plain) compare(t *testing.T, got *pciids.IDs) {
	t.Helper()
	check := func(what string, key any, got, want string) {
		if got != want {
			t.Errorf("%s %v: got %q, want %q", what, key, got, want)
		}
	}
	for k, want := range p.vendors {
		check("vendor", k, got.Vendor(k), want)
	}
	for k, want := range p.devices {
		check("device", k, got.Device(k[0], k[1]), want)
	}
	for k, want := range p.subsystems {
		check("subsystem", k, got.Subsystem(k[0], k[1], k[2], k[3]), want)
	}
	for k, want := range p.classes {
		check("class", k, got.Class(pci.Class(k[0])<<16|pci.Class(k[1])<<8), want)
	}
	for k, want := range p.bases {
		for sub := range pci.ID(256) {
			if _, there := p.classes[[2]pci.ID{k, sub}]; !there {
				check("base class", k, got.Class(pci.Class(k)<<16|pci.Class(sub)<<8|0xff), want)
			}
		}
	}
}
