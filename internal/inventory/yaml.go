package inventory

import (
	"bytes"

	"sigs.k8s.io/yaml"
)

// yaml writes the document as kubectl would: the fields of JSON, by name.
func (i *Inventory) yaml(b *bytes.Buffer) error {
	var text bytes.Buffer
	if err := i.json(&text); err != nil {
		return err
	}
	out, err := yaml.JSONToYAML(text.Bytes())
	if err != nil {
		return err
	}
	b.Write(out)
	return nil
}
