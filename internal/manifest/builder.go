package manifest

import "fmt"

// What an input may cost. A dump of ten thousand pods has some three million values.
const (
	maxDepth  = 100
	maxValues = 40_000_000
	// mostInterned is how many different short strings are kept once: keys, mostly.
	mostInterned = 100_000
)

// builder is what all texts of one run share.
type builder struct {
	file    string
	values  int
	strings map[string]string
}

// intern returns a string that is kept once.
func (b *builder) intern(s []byte) string {
	if len(s) > 64 {
		return string(s)
	}
	if known, ok := b.strings[string(s)]; ok {
		return known
	}
	if b.strings == nil {
		b.strings = map[string]string{}
	}
	fresh := string(s)
	if len(b.strings) < mostInterned {
		b.strings[fresh] = fresh
	}
	return fresh
}

// grown counts a value, and says when there are too many.
func (b *builder) grown(n *node, depth int) error {
	at := Place{b.file, int(n.line), int(n.column)}
	if depth > maxDepth {
		return Problem{Place: at, What: fmt.Sprintf("is nested more than %d deep; no manifest is", maxDepth)}
	}
	if b.values++; b.values > maxValues {
		return Problem{Place: at, What: fmt.Sprintf("is beyond %d values; check a part of the input at a time", maxValues)}
	}
	return nil
}

// forgotten says whether a key's value is left out. The two repeat the object as it was
// some time ago, with names that are not in it any more.
func forgotten(key string) bool {
	return key == "kubectl.kubernetes.io/last-applied-configuration" || key == "fieldsV1"
}
