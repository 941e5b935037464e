package explain

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// SchemaVersion is that of the JSON form. It changes when something that was there is no longer, or
// means something else; not when something is added.
const SchemaVersion = 1

type document struct {
	SchemaVersion int     `json:"schemaVersion"`
	Subject       subject `json:"subject"`
	State         string  `json:"state"`
	Chains        []chain `json:"chains"`
}

type subject struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

type chain struct {
	About string `json:"about"`
	// StopsAt is the step of the first no, absent where there is none.
	StopsAt string `json:"stopsAt,omitempty"`
	Steps   []step `json:"steps"`
}

type step struct {
	Name     string     `json:"name"`
	Verdict  Verdict    `json:"verdict"`
	Says     string     `json:"says,omitempty"`
	Check    string     `json:"check,omitempty"`
	Help     string     `json:"help,omitempty"`
	Tell     string     `json:"wouldTell,omitempty"`
	Evidence []evidence `json:"evidence,omitempty"`
}

type evidence struct {
	Text   string     `json:"text"`
	Source string     `json:"source,omitempty"`
	At     *time.Time `json:"at,omitempty"`
}

// JSON writes a report for programs.
func JSON(w io.Writer, r *Report) error {
	d := document{SchemaVersion: SchemaVersion, Subject: subject(r.Subject), State: r.State, Chains: []chain{}}
	for _, c := range r.Chains {
		of := chain{About: c.About, Steps: []step{}}
		if b := c.Break(); b != nil {
			of.StopsAt = b.Name
		}
		for _, s := range c.Steps {
			one := step{Name: s.Name, Verdict: s.Verdict, Says: s.Says, Check: s.Check, Help: s.Help, Tell: s.Tell}
			for _, e := range s.Evidence {
				at := evidence{Text: e.Text, Source: e.Source}
				if !e.At.IsZero() {
					at.At = new(e.At.UTC())
				}
				one.Evidence = append(one.Evidence, at)
			}
			of.Steps = append(of.Steps, one)
		}
		d.Chains = append(d.Chains, of)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(d); err != nil {
		return fmt.Errorf("write explanation: %w", err)
	}
	return nil
}
