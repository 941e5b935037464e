package exporter

import (
	"maps"

	"kata-device-plugin/internal/nodestate"
)

// transition is a turn of a function's health.
type transition struct {
	place
	to string
}

// turns counts the functions that turned between two states, of which both know the hardware; before is nil for
// the first. Those that have left are kept: what they counted is not undone.
func turns(count map[transition]int, before, after *nodestate.State) map[transition]int {
	now := map[transition]int{}
	maps.Copy(now, count)
	is := places(after, (*nodestate.Unit).Healthy)
	for at := range is {
		for _, to := range []string{"healthy", "unhealthy"} {
			now[transition{at, to}] += 0 // what is not there yet cannot be seen to rise
		}
	}
	if before == nil {
		return now
	}
	was := places(before, (*nodestate.Unit).Healthy)
	for at, healthy := range is {
		if healthy && !was[at] {
			now[transition{at, "healthy"}]++
		}
	}
	for at, healthy := range was {
		if healthy && !is[at] { // has left, too
			now[transition{at, "unhealthy"}]++
		}
	}
	return now
}
