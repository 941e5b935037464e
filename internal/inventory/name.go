package inventory

import "bytes"

// names writes one address a line.
func (i *Inventory) names(b *bytes.Buffer) {
	for k := range i.Functions {
		b.WriteString(i.Functions[k].Address.String() + "\n")
	}
}
