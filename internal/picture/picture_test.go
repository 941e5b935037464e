package picture_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/picture"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func draw(t testing.TB, i *inventory.Inventory, o picture.Options) string {
	t.Helper()
	var b strings.Builder
	must(t, picture.Write(&b, i, o))
	return b.String()
}

// box is a rectangle of a picture.
type box struct {
	class      string
	x, y, w, h int
}

func (a box) overlaps(b box) bool {
	return a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h
}

func (a box) holds(b box) bool {
	return a.x <= b.x && a.y <= b.y && b.x+b.w <= a.x+a.w && b.y+b.h <= a.y+a.h
}

// page is what a picture has: rectangles, texts with their places, and elements by ID.
type page struct {
	boxes []box
	ids   []string
	texts []string
	at    []box // of the texts; they have no size
}

// parse reads a picture strictly, and wants it to be one that needs nothing but itself.
func parse(t *testing.T, text string) page {
	t.Helper()
	var p page
	var last xml.StartElement
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p
		}
		must(t, err)
		switch e := token.(type) {
		case xml.StartElement:
			last = e
			if !slices.Contains([]string{"svg", "title", "desc", "g", "a", "rect", "circle", "path", "text"}, e.Name.Local) {
				t.Errorf("there is an element %s", e.Name.Local)
			}
			for _, a := range e.Attr {
				if strings.HasPrefix(a.Name.Local, "on") || a.Name.Local == "style" || strings.Contains(a.Value, "url(") ||
					a.Name.Local == "href" && !strings.HasPrefix(a.Value, "#") {
					t.Errorf("there is an attribute %s=%q", a.Name.Local, a.Value)
				}
				if a.Name.Local == "id" {
					p.ids = append(p.ids, a.Value)
				}
			}
			if e.Name.Local == "rect" {
				p.boxes = append(p.boxes, boxOf(t, e))
			}
		case xml.CharData:
			if s := strings.TrimSpace(string(e)); s != "" {
				p.texts = append(p.texts, s)
				if last.Name.Local == "text" {
					p.at = append(p.at, boxOf(t, last))
				}
			}
		}
	}
}

func boxOf(t *testing.T, e xml.StartElement) box {
	t.Helper()
	var b box
	for _, a := range e.Attr {
		to := map[string]*int{"x": &b.x, "y": &b.y, "width": &b.w, "height": &b.h}[a.Name.Local]
		if a.Name.Local == "class" {
			b.class = a.Value
		}
		if to != nil {
			var err error
			*to, err = strconv.Atoi(a.Value)
			must(t, err)
		}
	}
	return b
}

// sound holds a picture against what is true of all of them.
func sound(t *testing.T, i *inventory.Inventory, text string) {
	t.Helper()
	p := parse(t, text)
	if text != draw(t, i, options(text)) {
		t.Error("the same inventory gives another picture")
	}
	sorted := slices.Sorted(slices.Values(p.ids))
	if unique := slices.Compact(slices.Clone(sorted)); len(unique) != len(sorted) {
		t.Errorf("an ID occurs twice in %v", sorted)
	}
	all := strings.Join(p.texts, "\n")
	for k := range i.Functions {
		if a := i.Functions[k].Address.String(); !strings.Contains(all, a) {
			t.Errorf("%s is nowhere", a)
		}
	}
	ground := p.boxes[0]
	for k, b := range p.boxes {
		if !ground.holds(b) {
			t.Errorf("%+v is outside of the picture %+v", b, ground)
		}
		for _, other := range p.boxes[:k] {
			if b.overlaps(other) && (b.class == other.class && b.class != "bridge" || !other.holds(b)) {
				t.Errorf("%+v overlaps %+v", b, other)
			}
		}
	}
	for _, at := range p.at {
		if !ground.holds(at) {
			t.Errorf("a text at %d,%d is outside of the picture", at.x, at.y)
		}
	}
	cards := 0
	for _, b := range p.boxes {
		if b.class == "device" {
			cards++
		}
	}
	want := 0
	for _, n := range i.Tree() {
		for k := range n.Roots {
			want += leaves(&n.Roots[k])
		}
	}
	if cards != want {
		t.Errorf("%d cards for %d functions", cards, want)
	}
}

func leaves(b *inventory.Branch) int {
	n := len(b.Functions)
	for k := range b.Branches {
		n += leaves(&b.Branches[k])
	}
	return n
}

// options are those that a picture was drawn with.
func options(text string) picture.Options {
	if strings.Contains(text, "<a href") || strings.Contains(text, `id="n1-`) {
		return picture.Options{Links: true, Prefix: "n1"}
	}
	return picture.Options{}
}

// TestHostileTexts: names come from the node, or from a file that somebody sent.
func TestHostileTexts(t *testing.T) {
	const bad = `"><script>alert(1)</script>&<![CDATA[` + "\x00\x1b'\u202e]]>" + `<a href="https://example.com">`
	i := &inventory.Inventory{
		Node: bad, Resources: []inventory.Resource{{Name: bad}},
		Findings: []inventory.Finding{{ID: bad, Title: bad, Remedy: bad, Device: bad, Evidence: []inventory.Evidence{{Path: bad, Value: bad}}}},
	}
	for bus := range uint8(3) {
		f := inventory.Function{
			Address: pci.Address{Domain: 0x10000, Bus: bus}, Name: bad, Driver: bad, PCIeRoot: bad, IOMMUGroup: bad, Type: inventory.Type(bad),
			State: inventory.State(bad), Interfaces: []string{bad}, Cdev: &inventory.Cdev{Path: bad},
			Devices: []inventory.Device{{ID: bad, Resource: bad, Holders: []inventory.Holder{{Namespace: bad, Pod: bad}}}},
		}
		if bus == 2 {
			f.PhysicalFunction = &pci.Address{Domain: 0x10000, Bus: 1}
			i.Functions[1].VirtualFunctions = []pci.Address{f.Address}
		}
		i.Functions = append(i.Functions, f)
	}
	for _, o := range []picture.Options{{}, {Links: true, Prefix: bad}} {
		text := draw(t, i, o)
		p := parse(t, text) // refuses what is no part of a picture
		if !strings.Contains(strings.Join(p.texts, "\n"), "<script>alert(1)</script>") {
			t.Error("want the names as they are, as text")
		}
	}
}

func TestEmpty(t *testing.T) {
	i := &inventory.Inventory{}
	text := draw(t, i, picture.Options{})
	sound(t, i, text)
	if !strings.Contains(text, "No PCI function of this node is a candidate") {
		t.Error("want words where there is nothing to draw")
	}
}

// TestManyRemarks: findings about the node do not make the picture grow without end.
func TestManyRemarks(t *testing.T) {
	i := &inventory.Inventory{}
	for k := range 100 {
		i.Findings = append(i.Findings, inventory.Finding{ID: "HST025", Device: fmt.Sprintf("entry%02d", k), Title: "title"})
	}
	text := draw(t, i, picture.Options{})
	sound(t, i, text)
	if !strings.Contains(text, "entry07") || strings.Contains(text, "entry08") || !strings.Contains(text, "and 92 more findings") {
		t.Errorf("want eight findings and the number of the others:\n%s", text)
	}
}

type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestFullDisk(t *testing.T) {
	if err := picture.Write(full{}, &inventory.Inventory{}, picture.Options{}); !errors.Is(err, errFull) {
		t.Errorf("got %v", err)
	}
}
