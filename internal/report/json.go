package report

import (
	"encoding/json"
	"fmt"
	"io"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/manifest"
)

// SchemaVersion is that of the JSON form. It changes when something that was there is no
// longer, or means something else; not when something is added.
const SchemaVersion = 1

// Tool is the program that reports.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type document struct {
	SchemaVersion int        `json:"schemaVersion"`
	Tool          Tool       `json:"tool"`
	Inputs        []input    `json:"inputs"`
	Complete      []string   `json:"complete"`
	Listed        []listed   `json:"completeByList,omitempty"`
	Findings      []one      `json:"findings"`
	Passed        []string   `json:"passed"`
	Made          int        `json:"made,omitempty"`
	Skipped       []skipped  `json:"skipped"`
	Gaps          []gap      `json:"gaps"`
	Disabled      []string   `json:"disabled"`
	Names         []spelling `json:"names"`
}

type input struct {
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
	SHA256  string `json:"sha256"`
	Objects int    `json:"objects"`
	// Node is the host of a captured node. One that was captured for this run has no text, and no sum of one.
	Node string `json:"node,omitempty"`
}

// listed is a kind of which a list seems to have everything: it does not say whether something was selected.
type listed struct {
	Kind  string `json:"kind"`
	Input string `json:"input"`
}

type where struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

type object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

type one struct {
	ID       string    `json:"id"`
	Severity string    `json:"severity"`
	Title    string    `json:"title"`
	Message  string    `json:"message"`
	Place    where     `json:"place"`
	Object   *object   `json:"object,omitempty"`
	Resource string    `json:"resource,omitempty"`
	Related  []related `json:"related,omitempty"`
	Evidence []string  `json:"evidence,omitempty"`
	Help     string    `json:"help,omitempty"`
	// Ignored says who accepts the finding; it is then not counted.
	Ignored     string `json:"ignored,omitempty"`
	Fingerprint string `json:"fingerprint"`
}

type related struct {
	Place where  `json:"place"`
	Text  string `json:"text"`
}

type skipped struct {
	ID      string   `json:"id"`
	Missing []string `json:"missing"`
	// Inputs are what somebody would have to add, in the words of gaps.
	Inputs []string `json:"inputs"`
}

// gap is what is missing, with all checks that are skipped for it.
type gap struct {
	Inputs []string `json:"inputs"`
	IDs    []string `json:"ids"`
}

type spelling struct {
	Name       string       `json:"name"`
	Advertised []advertiser `json:"advertised"`
	Nodes      int          `json:"nodes"`
}

type advertiser struct {
	Object object `json:"object"`
	Place  where  `json:"place"`
	Why    string `json:"why"`
}

// JSON writes everything that a run says, what is ignored included.
func JSON(w io.Writer, r *check.Result, tool Tool) error {
	d := document{
		SchemaVersion: SchemaVersion, Tool: tool,
		Inputs: []input{}, Complete: orEmpty(r.Complete), Findings: []one{}, Passed: orEmpty(r.Passed), Made: r.Made,
		Skipped: []skipped{}, Gaps: []gap{}, Disabled: orEmpty(r.Disabled), Names: []spelling{},
	}
	for _, i := range r.Inputs {
		d.Inputs = append(d.Inputs, input{Name: i.Name, Bytes: i.Bytes, SHA256: i.SHA256, Objects: i.Objects})
	}
	for _, n := range r.Nodes {
		d.Inputs = append(d.Inputs, input{Name: n.File, Bytes: n.Bytes, SHA256: n.SHA256, Node: n.Host()})
	}
	for _, l := range r.Listed {
		d.Listed = append(d.Listed, listed(l))
	}
	for _, f := range r.Findings {
		d.Findings = append(d.Findings, oneOf(f))
	}
	for _, s := range r.Skipped {
		d.Skipped = append(d.Skipped, skipped{s.ID, s.Missing, s.Inputs})
	}
	for _, g := range r.Gaps() {
		d.Gaps = append(d.Gaps, gap(g))
	}
	for _, n := range r.Names {
		s := spelling{Name: n.Name, Advertised: []advertiser{}, Nodes: n.Nodes}
		for _, a := range n.Advertised {
			s.Advertised = append(s.Advertised, advertiser{object(a.Object), whereIs(a.Place), a.Why})
		}
		d.Names = append(d.Names, s)
	}
	return write(w, d)
}

func oneOf(f check.Finding) one {
	o := one{
		ID: f.ID, Severity: f.Severity.String(), Title: f.Title, Message: f.Message, Place: whereIs(f.Place),
		Resource: f.Resource, Evidence: f.Evidence, Help: f.Help, Ignored: f.Ignored, Fingerprint: fingerprint(f),
	}
	if f.Object != (check.Ref{}) {
		o.Object = new(object(f.Object))
	}
	for _, r := range f.Related {
		o.Related = append(o.Related, related{whereIs(r.Place), r.Text})
	}
	return o
}

func whereIs(p manifest.Place) where { return where{p.File, p.Line, p.Column} }

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func write(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
