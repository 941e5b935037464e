package placement

import (
	"cmp"
	"slices"
)

// score says how good a choice below some domain is. Scores of choices in different
// domains add up, and which of two is better does not change when the same is added to
// both.
type score struct {
	impossible bool
	spread     []int  // the number of domains that are touched, the widest first
	left       []sets // how the choice changes what is together for others, sorted
}

// sets is by how much a choice changes the number of domains of one level with size
// free units in them.
type sets struct {
	level, size int
	more        int
}

// compare orders by weight: the widest domains first, and in them the largest sets.
func (s sets) compare(t sets) int {
	return cmp.Or(cmp.Compare(s.level, t.level), cmp.Compare(t.size, s.size))
}

// set makes s the sum of two scores. It reuses what s holds.
func (s *score) set(a, b *score) {
	if len(a.spread) < len(b.spread) {
		a, b = b, a
	}
	s.impossible = false
	s.spread = append(s.spread[:0], a.spread...)
	for i, n := range b.spread {
		s.spread[i] += n
	}
	s.left = s.left[:0]
	x, y := a.left, b.left
	for len(x) > 0 || len(y) > 0 {
		switch order := ahead(x, y); {
		case order < 0:
			s.left, x = append(s.left, x[0]), x[1:]
		case order > 0:
			s.left, y = append(s.left, y[0]), y[1:]
		default:
			both := x[0]
			both.more += y[0].more
			if both.more != 0 {
				s.left = append(s.left, both)
			}
			x, y = x[1:], y[1:]
		}
	}
}

// ahead compares the heads of two lists that are not both empty. An empty one is last.
func ahead(x, y []sets) int {
	switch {
	case len(x) == 0:
		return 1
	case len(y) == 0:
		return -1
	}
	return x[0].compare(y[0])
}

// better says whether s is a better score than t.
func (s *score) better(t *score) bool {
	if c := slices.Compare(s.spread, t.spread); c != 0 {
		return c < 0
	}
	x, y := s.left, t.left
	for len(x) > 0 || len(y) > 0 {
		switch order := ahead(x, y); {
		case order < 0:
			return x[0].more > 0
		case order > 0:
			return y[0].more < 0
		case x[0].more != y[0].more:
			return x[0].more > y[0].more
		}
		x, y = x[1:], y[1:]
	}
	return false
}

// span adds that a domain is touched, which had some free units and has fewer now.
func (s *score) span(level, had, has int, leave bool) {
	for len(s.spread) <= level {
		s.spread = append(s.spread, 0)
	}
	s.spread[level]++
	if !leave {
		return
	}
	s.add(sets{level, had, -1})
	if has > 0 {
		s.add(sets{level, has, 1})
	}
}

func (s *score) add(n sets) {
	i, found := slices.BinarySearchFunc(s.left, n, sets.compare)
	if !found {
		s.left = slices.Insert(s.left, i, n)
		return
	}
	if s.left[i].more += n.more; s.left[i].more == 0 {
		s.left = slices.Delete(s.left, i, i+1)
	}
}
