//go:build !kubernetes134

package exporter

// audit wants the page to be usable for people who do not see it well, or have no mouse.
func (b *browser) audit() {
	b.t.Helper()
	for _, low := range value[[]string](b, contrasts) {
		b.t.Errorf("too little contrast: %s", low)
	}
	for _, bad := range value[[]string](b, basics) {
		b.t.Error(bad)
	}
}

// contrasts are the texts of the page whose contrast to what is behind them is below 4.5, by WCAG's
// formula.
const contrasts = `(() => {
  const rgb = (text) => text.match(/[\d.]+/g).map(Number);
  const light = (text) => {
    const [r, g, b] = rgb(text).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const probe = document.createElement("span");
  probe.style.setProperty("color", "Canvas");
  document.body.append(probe);
  const canvas = getComputedStyle(probe).color;
  probe.remove();
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return getComputedStyle(e).backgroundColor;
    }
    return canvas;
  };
  const low = new Set();
  for (const e of document.querySelectorAll("h1, h2, p, th, td, a, button, strong, time, span")) {
    if (e.closest("svg") || !e.textContent.trim()) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(behind(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.add(e.tagName + " " + getComputedStyle(e).color + " on " + behind(e) + ": " + e.textContent.slice(0, 40));
  }
  return [...low];
})()`

// basics are what somebody who does not see the page, or has no mouse, would miss.
const basics = `(() => {
  const bad = [];
  const want = (what, ok) => { if (!ok) bad.push(what); };
  want("no language", document.documentElement.lang === "en");
  want("no title with the node's name", document.title.includes("node-1"));
  want("not one h1", document.querySelectorAll("h1").length === 1);
  want("not one main", document.querySelectorAll("main").length === 1);
  let level = 0;
  for (const h of document.querySelectorAll("h1, h2, h3, h4")) {
    want("a heading skips a level: " + h.textContent, Number(h.tagName[1]) <= level + 1);
    level = Number(h.tagName[1]);
  }
  for (const table of document.querySelectorAll("table")) {
    want("a table without column headers", table.querySelectorAll('thead th[scope="col"]').length > 1);
    for (const row of table.tBodies[0].rows) want("a row without a header: " + row.textContent, row.querySelector('th[scope="row"]'));
    want("a table in no labelled region", table.closest("[aria-labelledby], [aria-label]"));
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of ids) want("two elements are " + id, ids.filter((other) => other === id).length === 1);
  for (const e of document.querySelectorAll("[aria-labelledby]")) for (const id of e.getAttribute("aria-labelledby").split(" ")) want("labelled by nothing: " + e.outerHTML.slice(0, 80), document.getElementById(id));
  for (const e of document.querySelectorAll("svg")) want("a picture without a name", e.querySelector("title") || e.hasAttribute("aria-label") || e.hasAttribute("aria-labelledby"));
  return bad;
})()`
