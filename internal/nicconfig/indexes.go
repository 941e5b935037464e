package nicconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Range is a range of VF or SF numbers, both ends included.
type Range struct{ First, Last uint32 }

// Indexes are numbers of VFs or SFs: ranges in ascending order with gaps between them.
// Without any range it is every number.
type Indexes []Range

// Has says whether a number is among them.
func (x Indexes) Has(i uint32) bool {
	for _, r := range x {
		if r.First <= i && i <= r.Last {
			return true
		}
	}
	return len(x) == 0
}

// join makes ranges in any order what Indexes promise.
func join(x []Range) Indexes {
	slices.SortFunc(x, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	var joined Indexes
	for _, next := range x {
		if n := len(joined); n > 0 && uint64(next.First) <= uint64(joined[n-1].Last)+1 {
			joined[n-1].Last = max(joined[n-1].Last, next.Last)
			continue
		}
		joined = append(joined, next)
	}
	return joined
}

// ranges reads what stands behind the # of an entry: numbers and ranges with commas
// between them. The old plugin stopped at the first element that it could not read and
// kept what it had; here the entry as a whole is wrong.
func ranges(s string) (list []Range, what, remedy string) {
	const form = "write it like 0-3,7, without blanks"
	for elem := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(elem, "-")
		if !isRange {
			last = first
		}
		a, ok1 := index(first)
		b, ok2 := index(last)
		switch {
		case elem == "":
			return nil, "has an empty element behind #", form
		case !ok1 || !ok2:
			return nil, fmt.Sprintf("has %s behind #, which is no number or range", quoted(elem)), form
		case a > b:
			return nil, fmt.Sprintf("has the range %s, which ends before it begins", quoted(elem)), fmt.Sprintf("write %d-%d", b, a)
		}
		list = append(list, Range{a, b})
	}
	return list, "", ""
}

func index(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil
}

// parts collects the entries of a selector by parent: several entries for one parent
// are a union, and one without numbers is all of it.
type parts[K comparable] struct {
	order []K
	lists map[K][]Range
	whole map[K]bool
}

func newParts[K comparable]() *parts[K] {
	return &parts[K]{lists: map[K][]Range{}, whole: map[K]bool{}}
}

func (p *parts[K]) add(k K, list []Range) {
	if _, ok := p.lists[k]; !ok {
		p.order = append(p.order, k)
	}
	p.lists[k] = append(p.lists[k], list...)
	p.whole[k] = p.whole[k] || len(list) == 0
}

// indexes returns what all entries of a parent select.
func (p *parts[K]) indexes(k K) Indexes {
	if p.whole[k] {
		return nil
	}
	return join(p.lists[k])
}
