package pciids

import (
	"cmp"
	"slices"
)

// index finds places in a text by number. A map would take several times the memory.
type index []mark

// mark is the place of a name. Texts are far shorter than 4 GiB: see maxSize.
type mark struct{ key, at uint32 }

func (x *index) add(key uint32, at int) { *x = append(*x, mark{key, uint32(at)}) }

// order makes the index fit for find. The list asks its writers to keep it sorted, so there is
// nothing to do as a rule. Of two entries with one number the first one holds.
func (x *index) order() {
	if !slices.IsSortedFunc(*x, byKey) {
		slices.SortStableFunc(*x, byKey)
	}
	*x = slices.Clip(*x)
}

func byKey(a, b mark) int { return cmp.Compare(a.key, b.key) }

func (x index) find(key uint32) (at uint32, ok bool) {
	i, ok := slices.BinarySearchFunc(x, mark{key: key}, byKey)
	if !ok {
		return 0, false
	}
	return x[i].at, true
}

// pair is the key of what has two numbers.
func pair(high, low uint32) uint32 { return high<<16 | low }
