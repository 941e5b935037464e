package nic

import (
	"maps"
	"slices"

	"kata-device-plugin/internal/pci"
)

// terms are how many shares a pool has.
type terms struct {
	budget int // over all devices
	limit  int // for each device
}

// deal says which shares of which devices a pool hands out. It depends on the devices that
// are there and on what pods hold, and on nothing that was dealt before, so that a restart
// changes nothing.
//
// What pods hold stays, even where that is more than the terms allow. The rest goes round by
// round, in the order of addresses: number 0 of each device, then number 1. So an
// address keeps its lowest numbers whichever other device comes or goes, and only the highest
// ones move.
func deal(devices []pci.Address, t terms, held shares) map[pci.Address][]int {
	dealt := make(map[pci.Address][]int, len(devices))
	count := 0
	for _, a := range devices {
		dealt[a] = slices.Sorted(maps.Keys(held.of(a)))
		count += len(dealt[a])
	}
	for n := 0; n < t.limit && count < t.budget && len(devices) > 0; n++ {
		for _, a := range devices {
			if count < t.budget && !held.of(a)[n] {
				dealt[a] = append(dealt[a], n)
				count++
			}
		}
	}
	return dealt
}
