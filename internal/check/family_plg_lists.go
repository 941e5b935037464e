package check

import (
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"

	"kata-device-plugin/internal/capture"
)

// twoWays: plugins name their socket after the resource, wherever they register.
func twoWays(w *World) []Finding {
	return w.onNodes((*captured).hasPluginSockets, func(n *captured) []Finding {
		live, _ := n.serving()
		first := map[string]*capture.Entry{}
		var all []Finding
		for _, e := range live {
			name := path.Base(e.Path)
			if was := first[name]; was != nil {
				f := n.found("%s and %s of node %s both serve: the plugin registers in two ways", was.Path, e.Path, n.name)
				all = append(all, f.because("both accept connections"))
			}
			first[name] = e
		}
		return all
	})
}

// What a device takes of a message, beside its ID: the field and the length of the device, of its
// ID, of its health with the longer of the two words, and of one NUMA node.
const perDevice = 2 + 2 + 2 + len("Unhealthy") + 8

// The largest message that kubelet takes, and what is near it.
const (
	largestList = 4 << 20
	largeList   = largestList / 4 * 3
)

// deviceLists are the IDs that kubelet has of each resource.
func (n *captured) deviceLists() map[string][]string {
	if n.record != nil && len(n.record.Data.RegisteredDevices) > 0 {
		return n.record.Data.RegisteredDevices
	}
	return n.offered()
}

// listLarge reckons what a plugin sends: of those that are healthy, or of the shares that it is
// told to make.
func listLarge(w *World) []Finding {
	all := w.onNodes(func(n *captured) bool { return len(n.deviceLists()) > 0 }, func(n *captured) []Finding {
		var all []Finding
		lists := n.deviceLists()
		for _, resource := range slices.Sorted(maps.Keys(lists)) {
			size := 0
			for _, id := range lists[resource] {
				size += perDevice + len(id)
			}
			if size >= largeList {
				f := n.found("the device list of %s on node %s has about %d KiB, and kubelet takes %d", resource, n.name, size>>10, largestList>>10)
				all = append(all, f.about(resource).because("it has %d devices", len(lists[resource])))
			}
		}
		return all
	})
	for _, c := range w.configs {
		for _, p := range c.Pools {
			shares := p.GetFold("rdmaHcaMax")
			if kib := sharesKiB(shares.Text()); p.Shared && kib >= largeList>>10 {
				all = append(all, found(c.Owner, shares, "the device list of %s shares has about %.0f KiB, and kubelet takes %d",
					shares.Text(), kib, largestList>>10))
			}
		}
	}
	return all
}

// sharesKiB is about how large the list of a number of shares is; 0 for what is no number. It may be any
// number that somebody has written.
func sharesKiB(text string) float64 {
	count, err := strconv.ParseInt(text, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0
	}
	return float64(count) * float64(perDevice+len(text)) / 1024
}
