//go:build !kubernetes134

package exporter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// pictures are those that package picture is held against: all simulated platforms, and two that have
// more to show.
const pictures = "../../internal/picture/testdata"

// faults says what of a picture cannot be read: text that overlaps another one, that leaves the picture
// or its card, or that hardly differs from what is behind it, and states that look alike without colour.
const faults = `(() => {
	const bad = [], box = e => e.getBBox(), name = t => JSON.stringify(t.textContent)
	const svg = document.documentElement, all = svg.viewBox.baseVal
	const inside = (r, of, slack) => r.x >= of.x - slack && r.y >= of.y - slack &&
		r.x + r.width <= of.x + of.width + slack && r.y + r.height <= of.y + of.height + slack
	const texts = [...document.querySelectorAll('text')].map(t => ({t, r: box(t)}))
	const grounds = [...document.querySelectorAll('rect, circle, path')].filter(e => e.getAttribute('fill') !== 'none' && e.getAttribute('fill'))
	const channels = fill => { const c = document.createElementNS('http://www.w3.org/2000/svg', 'rect'); c.style.color = fill; svg.append(c)
		const v = getComputedStyle(c).color.match(/[0-9.]+/g).slice(0, 3).map(x => x / 255); c.remove(); return v }
	const light = fill => { const [r, g, b] = channels(fill).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		return 0.2126 * r + 0.7152 * g + 0.0722 * b }
	const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05) }
	texts.forEach(({t, r}, i) => {
		if (!r.width || !r.height) bad.push(name(t) + ' is not to be seen')
		if (!inside(r, all, 0)) bad.push(name(t) + ' leaves the picture')
		const card = t.closest('g.device')?.querySelector('rect')
		if (card && !inside(r, box(card), 1)) bad.push(name(t) + ' leaves its card')
		for (const o of texts.slice(i + 1)) {
			const x = Math.min(r.x + r.width, o.r.x + o.r.width) - Math.max(r.x, o.r.x)
			const y = Math.min(r.y + r.height, o.r.y + o.r.height) - Math.max(r.y, o.r.y)
			if (x > 1 && y > 3) bad.push(name(t) + ' overlaps ' + name(o.t))
		}
		const middle = {x: r.x + r.width / 2, y: r.y + r.height / 2, width: 0, height: 0}
		const under = grounds.filter(e => e.compareDocumentPosition(t) & Node.DOCUMENT_POSITION_FOLLOWING && inside(middle, box(e), 0)).pop()
		const ratio = under ? contrast(t.getAttribute('fill'), under.getAttribute('fill')) : 0
		if (ratio < 4.5) bad.push(name(t) + ' has a contrast of ' + ratio.toFixed(1))
	})
	const looks = new Map()
	for (const letter of document.querySelectorAll('g.legend text[text-anchor=middle]')) {
		const shape = letter.previousElementSibling
		const look = shape.tagName + (shape.getAttribute('d') || '').replace(/[^A-Z]/g, '')
		if (looks.has(look)) bad.push('the states ' + looks.get(look) + ' and ' + letter.textContent + ' have one shape')
		looks.set(look, letter.textContent)
	}
	if (looks.size !== 4) bad.push('the legend has ' + looks.size + ' shapes')
	return [...new Set(bad)]
})()`

// TestPictures looks at the picture of every simulated platform in a browser.
func TestPictures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(pictures, "*.svg"))
	must(t, err)
	if len(files) < 10 {
		t.Fatalf("there are %d pictures in %s", len(files), pictures)
	}
	b := newBrowser(t)
	for _, file := range files {
		path, err := filepath.Abs(file)
		must(t, err)
		name := strings.TrimSuffix(filepath.Base(file), ".svg")
		b.do("open "+name, chromedp.EmulateViewport(1400, 1000), chromedp.Navigate("file://"+path))
		b.await(`document.documentElement.tagName === "svg" && document.readyState === "complete"`)
		b.picture("picture-" + name)
		for _, fault := range value[[]string](b, faults) {
			t.Errorf("%s: %s", name, fault)
		}
	}
	_, err = chromedp.Call(b.ctx, emulation.SetEmulatedVisionDeficiency, emulation.SetEmulatedVisionDeficiencyParams{
		Type: emulation.SetEmulatedVisionDeficiencyTypeAchromatopsia,
	})
	must(t, err)
	b.picture("picture-grey")
}

// TestFaults: a picture that cannot be read is found out.
func TestFaults(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(pictures, "troubled.svg"))
	must(t, err)
	b := newBrowser(t)
	for of, change := range map[string][2]string{
		"overlaps":          {"</svg>", `<text x="24" y="40" font-size="40" fill="#000000">over all of it</text></svg>`},
		"leaves the":        {"</svg>", `<text x="99999" y="40" font-size="9" fill="#000000">away</text></svg>`},
		"has a contrast of": {`fill="#1f2328"`, `fill="#eeeeee"`},
		"have one shape":    {`Z" fill="#8f0a1f"`, `L0 0Z" fill="#8f0a1f"`},
	} {
		file := filepath.Join(t.TempDir(), "x.svg")
		changed := strings.ReplaceAll(string(text), change[0], change[1])
		must(t, os.WriteFile(file, []byte(changed), 0o600))
		b.do("open", chromedp.Navigate("file://"+file))
		b.await(`document.documentElement.tagName === "svg" && document.readyState === "complete"`)
		found := value[[]string](b, faults)
		if !strings.Contains(strings.Join(found, "\n"), of) {
			t.Errorf("nothing is said to be %q: %q", of, found)
		}
	}
}
