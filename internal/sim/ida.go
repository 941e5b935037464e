package sim

// ida hands out the lowest free number, as the kernel's allocator of that name
// does for cdevs, IOMMU groups and group nodes.
type ida struct {
	used []bool
	low  int // no number below is free
}

func (i *ida) take() int {
	for i.low < len(i.used) && i.used[i.low] {
		i.low++
	}
	i.reserve(i.low)
	return i.low
}

// reserve takes a given number, which may have been taken before.
func (i *ida) reserve(number int) {
	for len(i.used) <= number {
		i.used = append(i.used, false)
	}
	i.used[number] = true
}

func (i *ida) free(number int) {
	if number < len(i.used) {
		i.used[number] = false
		i.low = min(i.low, number)
	}
}
