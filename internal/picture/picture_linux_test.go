package picture_test

import (
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/picture"
	"kata-device-plugin/internal/sim"
)

// machines are all presets, and three that have more to show.
func machines(t *testing.T) map[string]*inventory.Inventory {
	t.Helper()
	all := map[string]*inventory.Inventory{"troubled": troubled(t), "vfs": vfs(t), "held": held(t)}
	for _, p := range append(sim.Platforms(), sim.Adapters()) {
		_, src := node(t, p)
		all[p.Name] = take(t, src)
	}
	return all
}

func TestPictures(t *testing.T) {
	for name, i := range machines(t) {
		t.Run(name, func(t *testing.T) {
			text := draw(t, i, picture.Options{})
			golden.Assert(t, text, name+".svg")
			sound(t, i, text)
			sound(t, i, draw(t, i, picture.Options{Links: true, Prefix: "n1"}))
		})
	}
}

// TestLinks: every function that has a card or a mark of its own leads to its place on the page.
func TestLinks(t *testing.T) {
	i := troubled(t)
	with := draw(t, i, picture.Options{Links: true})
	golden.Assert(t, with, "links.svg")
	for k := range i.Functions {
		a := i.Functions[k].Address
		if n := strings.Count(with, `<a href="#`+picture.Anchor(a)+`">`); n != 1 {
			t.Errorf("%d links to %s", n, a)
		}
	}
	if without := draw(t, i, picture.Options{}); strings.Contains(without, "<a ") || !strings.Contains(without, `role="img" aria-labelledby=`) {
		t.Error("want no links, and an image, where nobody asked for links")
	}
}

func TestManyVFs(t *testing.T) {
	text := draw(t, vfs(t), picture.Options{})
	for _, want := range []string{"<title>127 VFs healthy: 0000:31:01.0, ", "<title>1 VFs not declared: 0000:31:01.3</title>", ">127</text>"} {
		if !strings.Contains(text, want) {
			t.Errorf("want %s", want)
		}
	}
	if n := strings.Count(text, `<g class="vf `); n != 4 {
		t.Errorf("%d VFs have marks of their own, want the 4 of the ConnectX", n)
	}
}

// TestManyGPUs: eight NUMA nodes and three PCI domains are only more of the same.
func TestManyGPUs(t *testing.T) {
	_, src := node(t, sim.Many(300))
	i := take(t, src)
	sound(t, i, draw(t, i, picture.Options{}))
}

func BenchmarkPicture(b *testing.B) {
	_, src := node(b, sim.Many(2048))
	i := take(b, src)
	if i.Counts.Healthy != 2048 {
		b.Fatalf("%+v", i.Counts)
	}
	for b.Loop() {
		draw(b, i, picture.Options{})
	}
}
