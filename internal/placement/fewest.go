package placement

import (
	"cmp"
	"slices"
)

// maxSearch bounds the number of combinations that are compared. A node has a handful
// of domains on each level; with more than this the choice is still close together,
// but not proven to leave the most for others.
const maxSearch = 20000

// fewest returns the smallest set of the given children that has n units. Among sets
// of that size it is the one that leaves the largest sets whole.
func (d *domain) fewest(of []int, n int) []int {
	bySize := slices.Clone(of)
	slices.SortStableFunc(bySize, func(a, b int) int { return cmp.Compare(d.children[b].units, d.children[a].units) })
	count, sum := 0, 0
	for sum < n && count < len(bySize) {
		sum += d.children[bySize[count]].units
		count++
	}
	if combinations(len(of), count) > maxSearch {
		return d.tail(bySize, count, n)
	}
	var best []int
	var bestLeft []int
	search(of, count, func(set []int) {
		sum := 0
		for _, i := range set {
			sum += d.children[i].units
		}
		if sum < n {
			return
		}
		left := d.left(of, set, sum-n)
		if best == nil || slices.Compare(left, bestLeft) > 0 {
			best, bestLeft = slices.Clone(set), left
		}
	})
	return best
}

// left is what stays together in each child once n units are taken from set, the
// largest first. over is what set has too many; it stays together in one child.
func (d *domain) left(of, set []int, over int) []int {
	left := make([]int, 0, len(of))
	for _, i := range of {
		if !slices.Contains(set, i) {
			left = append(left, d.children[i].units)
		}
	}
	left = append(left, over)
	slices.SortFunc(left, func(a, b int) int { return cmp.Compare(b, a) })
	return left
}

// tail is fewest without the search: the last window of the children, ordered by size,
// that has enough units.
func (d *domain) tail(bySize []int, count, n int) []int {
	for from := len(bySize) - count; from > 0; from-- {
		sum := 0
		for _, i := range bySize[from : from+count] {
			sum += d.children[i].units
		}
		if sum >= n {
			return bySize[from : from+count]
		}
	}
	return bySize[:count]
}

// search calls f with every choice of count elements, in the order of the elements.
func search(of []int, count int, f func([]int)) {
	set := make([]int, 0, count)
	var step func(from int)
	step = func(from int) {
		if len(set) == count {
			f(set)
			return
		}
		for i := from; i <= len(of)-(count-len(set)); i++ {
			set = append(set, of[i])
			step(i + 1)
			set = set[:len(set)-1]
		}
	}
	step(0)
}

// combinations is the number of choices of k among n, or something larger than
// maxSearch.
func combinations(n, k int) int {
	k = min(k, n-k)
	total := 1
	for i := range k {
		total = total * (n - i) / (i + 1)
		if total > maxSearch {
			return total
		}
	}
	return total
}
