package exporter

import (
	"bytes"
	_ "embed" // what the page loads
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"kata-device-plugin/internal/inventory"
	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/nodeview"
	"kata-device-plugin/internal/pciids"
	"kata-device-plugin/internal/picture"
)

//go:embed page.css
var pageCSS []byte

//go:embed page.js
var pageJS []byte

// policy lets the page load what this server has, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// pages makes the page of a view, once.
type pages struct {
	node  string
	stale time.Duration

	mu   sync.Mutex
	ids  *pciids.IDs // nil before the first page: a node of which nobody looks at the page does without
	of   *view
	made []byte
}

// page is the node for people: a picture, tables, and how old all of it is. It can be read without
// scripts; with them it follows the node.
func (e *Exporter) page(w http.ResponseWriter, _ *http.Request) {
	v := e.collector.view.Load()
	if v.state == nil {
		http.Error(w, "The node has not been looked at yet. Try again in a moment.", http.StatusServiceUnavailable)
		return
	}
	body, err := e.pages.make(v)
	if err != nil {
		e.journal.Once("the page", err)
		http.Error(w, "The page could not be made. The log says why.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	p := &paper{stale: e.options.Stale, now: e.now()}
	p.raw(`<!DOCTYPE html>` + "\n" + `<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>`)
	p.raw(`<title>%s: devices</title><link rel="stylesheet" href="page.css"/><script src="page.js" defer=""></script></head><body>`+"\n", e.pages.title())
	p.raw(`<a class="skip" href="#devices">Skip to the table of devices</a><main id="state"><h1>Devices of %s</h1>`+"\n", e.pages.title())
	p.age(v.state)
	p.Write(body)
	p.raw("</main></body></html>\n")
	_, _ = io.Copy(w, p) // whoever went away needs no page
}

// asset serves a file that the page loads.
func asset(kind string, data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "max-age=300")
		_, _ = w.Write(data)
	}
}

func (p *pages) title() string {
	if p.node == "" {
		return "this node"
	}
	return html.EscapeString(p.node)
}

// make makes what does not depend on the moment, unless it is there already.
func (p *pages) make(v *view) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == v {
		return p.made, nil
	}
	if p.ids == nil {
		ids, err := pciids.Open()
		if err != nil {
			return nil, err
		}
		p.ids = ids
	}
	to := &paper{}
	if v.snapshot != nil {
		in := inventory.Input{Node: p.node, NICs: v.nics, Name: p.ids.Device}
		nodeview.Add(&in, v.state, p.stale)
		inv := inventory.New(v.snapshot, in)
		to.raw(`<section aria-labelledby="picture-title"><h2 id="picture-title">Picture</h2><div class="scroll" id="picture" tabindex="0" role="region" aria-label="Picture of the node">`)
		if err := picture.Write(to, inv, picture.Options{Links: true}); err != nil {
			return nil, err
		}
		to.raw("</div></section>\n")
		to.unread(inv)
		to.devices(inv)
		to.absent(v.state, inv)
		to.findings(inv)
	}
	to.sources(v.state)
	p.of, p.made = v, to.Bytes()
	return p.made, nil
}

// paper is a page while it is written. All that is not the program's own words is escaped.
type paper struct {
	bytes.Buffer
	stale time.Duration
	now   time.Time
}

func (p *paper) raw(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// age says how old everything is, and what is missing because of that.
func (p *paper) age(s *nodestate.State) {
	p.raw(`<p id="age">Joined at <time datetime="%s">%s</time>.`, s.At.UTC().Format(time.RFC3339), s.At.UTC().Format("2006-01-02 15:04:05 UTC"))
	var old []string
	for _, of := range s.Sources {
		if !of.None && !of.Fresh(p.now, p.stale) {
			old = append(old, string(of.Source))
		}
	}
	if len(old) > 0 {
		p.raw(` <strong>Not known now: %s.</strong>`, html.EscapeString(strings.Join(old, ", ")))
	}
	p.raw("</p>\n")
}
