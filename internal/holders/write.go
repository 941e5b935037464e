package holders

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// The words for who has a device when it is no pod.
const (
	nobody  = "<nobody>"
	unknown = "<unknown>"
)

// Table writes the list for people. What is not known is below it.
func Table(w io.Writer, l *List) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NODE\tDEVICE\tRESOURCE\tNAMESPACE/POD\tCONTAINER\tCLAIM")
	for _, r := range l.Rows {
		cells := []string{r.Node, r.device(), r.resource(), r.who(), dash(r.Container), r.claim()}
		fmt.Fprintln(t, clean(strings.Join(cells, "\t")))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write holders: %w", err)
	}
	for _, u := range l.Unknown {
		if _, err := fmt.Fprintf(w, "unknown: %s\n", clean(u)); err != nil {
			return fmt.Errorf("write holders: %w", err)
		}
	}
	return nil
}

// device is the address and the name, or how many there are.
func (r Row) device() string {
	switch {
	case r.Device == "":
		return fmt.Sprintf("%d of them", r.Count)
	case r.Address == "" || r.Address == r.Device:
		return r.Device
	}
	return r.Address + " (" + r.Device + ")"
}

func (r Row) resource() string {
	if r.Driver != "" {
		return r.Driver
	}
	return dash(r.Resource)
}

func (r Row) claim() string {
	if r.Admin {
		return r.Claim + " (admin access)"
	}
	return dash(r.Claim)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// clean keeps what was read from steering a terminal.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' || c == 0x7f || 0x80 <= c && c < 0xa0 {
			return ' '
		}
		return c
	}, s)
}

// SchemaVersion is that of the JSON form. It changes when something that was there is no longer, or
// means something else; not when something is added.
const SchemaVersion = 1

type document struct {
	SchemaVersion int      `json:"schemaVersion"`
	Devices       []device `json:"devices"`
	Unknown       []string `json:"unknown"`
}

type device struct {
	Node      string `json:"node"`
	Device    string `json:"device,omitempty"`
	Address   string `json:"address,omitempty"`
	Count     int64  `json:"count"`
	Resource  string `json:"resource,omitempty"`
	Driver    string `json:"driver,omitempty"`
	Pool      string `json:"pool,omitempty"`
	Held      bool   `json:"held"`
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	Container string `json:"container,omitempty"`
	Claim     string `json:"claim,omitempty"`
	Admin     bool   `json:"adminAccess,omitempty"`
}

// JSON writes the list for programs. What is not known is left out, and named in words.
func JSON(w io.Writer, l *List) error {
	d := document{SchemaVersion: SchemaVersion, Devices: []device{}, Unknown: []string{}}
	known := func(s string) string {
		if s == unknown {
			return ""
		}
		return s
	}
	for _, r := range l.Rows {
		d.Devices = append(d.Devices, device{known(r.Node), r.Device, r.Address, r.Count, r.Resource, r.Driver, r.Pool, r.Held, r.Namespace,
			r.Pod, known(r.Container), r.Claim, r.Admin})
	}
	d.Unknown = append(d.Unknown, l.Unknown...)
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(d); err != nil {
		return fmt.Errorf("write holders: %w", err)
	}
	return nil
}
