package placement_test

import (
	"cmp"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kata-device-plugin/internal/placement"
)

func id(i int) string { return "u" + strconv.Itoa(i) }

// domains counts the chosen units in each domain of the given depth, 1 for the widest.
func domains(units []placement.Unit, chosen []string, depth int) map[string]int {
	count := map[string]int{}
	for _, u := range units {
		if len(u.Path) >= depth && slices.Contains(chosen, u.ID) {
			count[strings.Join(u.Path[:depth], "/")]++
		}
	}
	return count
}

// cost is what Choose's documentation says is to be small: the domains that are
// spanned, from the widest to the narrowest, and then, as less than nothing, the sizes
// of what is left together, the largest first.
func cost(units []placement.Unit, chosen []string) []int {
	const levels = 3
	all := make([]string, len(units))
	for i, u := range units {
		all[i] = u.ID
	}
	var spread, left []int
	for depth := 1; depth <= levels; depth++ {
		taken := domains(units, chosen, depth)
		spread = append(spread, len(taken))
		var sizes []int
		for d, n := range domains(units, all, depth) {
			sizes = append(sizes, taken[d]-n) // negative: more is better
		}
		slices.Sort(sizes)
		left = append(left, sizes...)
	}
	return append(spread, left...)
}

// problem makes a small question from random numbers.
func problem(r *rand.Rand) (units []placement.Unit, must []string, size int) {
	n := 1 + r.IntN(10)
	for i := range n {
		u := placement.Unit{ID: id(i), Path: []string{id(r.IntN(3)), id(r.IntN(3)), id(r.IntN(2))}}
		u.Path = u.Path[:min(3, 1+r.IntN(5))] // mostly whole
		units = append(units, u)
	}
	size = r.IntN(n + 2)
	for range r.IntN(3) {
		must = append(must, id(r.IntN(n)))
	}
	return units, must, size
}

// check holds an answer against everything that can be said about it, and against
// every other answer.
func check(t *testing.T, units []placement.Unit, must []string, size int) {
	t.Helper()
	got := placement.Choose(slices.Clone(units), slices.Clone(must), size)
	if again := placement.Choose(units, must, size); !slices.Equal(got, again) {
		t.Fatalf("asked twice: %v, then %v", got, again)
	}
	must = slices.Compact(slices.Sorted(slices.Values(must)))
	if len(got) != min(size, len(units)) {
		t.Fatalf("%d units are chosen: %v", len(got), got)
	}
	if len(slices.Compact(slices.Sorted(slices.Values(got)))) != len(got) {
		t.Fatalf("a unit is chosen twice: %v", got)
	}
	for _, c := range got {
		if !slices.ContainsFunc(units, func(u placement.Unit) bool { return u.ID == c }) {
			t.Fatalf("%s is not available", c)
		}
	}
	if size < len(must) {
		return // which of the musts are left out is not said
	}
	for _, m := range must {
		if !slices.Contains(got, m) {
			t.Fatalf("%v lacks the required %s", got, m)
		}
	}
	mine := cost(units, got)
	for mask := range 1 << len(units) {
		if bits.OnesCount(uint(mask)) != len(got) {
			continue
		}
		var other []string
		for i, u := range units {
			if mask>>i&1 == 1 {
				other = append(other, u.ID)
			}
		}
		if slices.ContainsFunc(must, func(m string) bool { return !slices.Contains(other, m) }) {
			continue
		}
		if theirs := cost(units, other); slices.Compare(theirs, mine) < 0 {
			t.Fatalf("of %v with %v, %d: %v costs %v, but %v costs %v", units, must, size, got, mine, other, theirs)
		}
	}
}

// TestProperty compares with brute force.
func TestProperty(t *testing.T) {
	for seed := range uint64(400) {
		units, must, size := problem(rand.New(rand.NewPCG(seed, 0)))
		check(t, units, must, size)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestOrder has the same units in another order: the cost of the answer is the same,
// and the units come in the order they were given in, behind the musts.
func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		units, _, size := problem(r)
		before := placement.Choose(units, nil, size)
		r.Shuffle(len(units), func(i, j int) { units[i], units[j] = units[j], units[i] })
		after := placement.Choose(units, nil, size)
		if !slices.Equal(cost(units, before), cost(units, after)) {
			t.Errorf("%v, in another order %v", before, after)
		}
		at := func(id string) int {
			return slices.IndexFunc(units, func(u placement.Unit) bool { return u.ID == id })
		}
		if !slices.IsSortedFunc(after, func(a, b string) int { return cmp.Compare(at(a), at(b)) }) {
			t.Errorf("%v is not in the order of %v", after, units)
		}
	}
}

func FuzzChoose(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Add(uint64(3), uint64(4))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		units, must, size := problem(rand.New(rand.NewPCG(a, b)))
		check(t, units, must, size)
	})
}
