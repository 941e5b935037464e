package inventory

import (
	"bytes"
	"encoding/json"
)

// json writes the document.
func (i *Inventory) json(b *bytes.Buffer) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(i)
}
