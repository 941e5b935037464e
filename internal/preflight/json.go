package preflight

import (
	"encoding/json"
	"fmt"
	"io"
)

// SchemaVersion is that of the JSON form. It changes when something that was there is no longer, or
// means something else; not when something is added.
const SchemaVersion = 1

type document struct {
	SchemaVersion int        `json:"schemaVersion"`
	Ways          []way      `json:"ways"`
	Moves         []moved    `json:"migrate"`
	Nodes         []compared `json:"inventories"`
	// Report is what check writes in JSON, with the findings that the lines name.
	Report json.RawMessage `json:"report"`
}

type way struct {
	Way    Way    `json:"way"`
	Answer Answer `json:"ready"`
	Lines  []line `json:"lines"`
}

type line struct {
	Section  string   `json:"section"`
	Question string   `json:"question"`
	Answer   Answer   `json:"answer"`
	Evidence []string `json:"evidence,omitempty"`
	Tell     []string `json:"wouldTell,omitempty"`
	Findings []string `json:"findings,omitempty"`
}

type moved struct {
	Resource   string  `json:"resource"`
	Class      string  `json:"class,omitempty"`
	Lacks      string  `json:"lacks,omitempty"`
	Users      []users `json:"workloads"`
	Dependents int     `json:"dependents"`
}

type users struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Count     int    `json:"count"`
	Example   string `json:"example"`
}

type compared struct {
	Node    string   `json:"node"`
	Lacks   string   `json:"lacks,omitempty"`
	Devices []device `json:"devices"`
}

type device struct {
	Address  string `json:"address"`
	Resource string `json:"resource,omitempty"`
	Device   string `json:"device,omitempty"`
	Differs  string `json:"differs,omitempty"`
}

// JSON writes a report for programs, with the findings as check writes them.
func JSON(w io.Writer, r *Report, findings []byte) error {
	d := document{SchemaVersion: SchemaVersion, Ways: []way{}, Moves: []moved{}, Nodes: []compared{}, Report: findings}
	for _, of := range r.Ways {
		one := way{Way: of.Way, Answer: of.Answer(), Lines: []line{}}
		for _, l := range of.Lines {
			one.Lines = append(one.Lines, line(l))
		}
		d.Ways = append(d.Ways, one)
	}
	for _, m := range r.Moves {
		one := moved{Resource: m.Resource, Class: m.Class, Lacks: m.Lacks, Users: []users{}, Dependents: len(m.Dependents)}
		for _, u := range m.Users {
			one.Users = append(one.Users, users{u.Namespace, u.Kind, u.Count, u.Example})
		}
		d.Moves = append(d.Moves, one)
	}
	for _, n := range r.Nodes {
		one := compared{Node: n.Node, Lacks: n.Lacks, Devices: []device{}}
		for _, b := range n.Devices {
			one.Devices = append(one.Devices, device(b))
		}
		d.Nodes = append(d.Nodes, one)
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(d); err != nil {
		return fmt.Errorf("write preflight: %w", err)
	}
	return nil
}
