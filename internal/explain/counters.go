package explain

import (
	"slices"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/manifest"
)

// Devices that are parts of one piece of hardware consume counters that they share: the whole of it is not
// free while a claim has a part.

// counter is one of a set of a pool.
type counter struct{ driver, pool, set, name string }

// counters are what there is of each counter, and what the devices in claims have of it.
type counters struct {
	all  map[counter]string
	used map[counter][]string
}

// sharedCounters is asked for each device, and reads the slices once.
func (c *claim) sharedCounters() *counters {
	if c.shared == nil {
		c.shared = c.readCounters()
	}
	return c.shared
}

func (c *claim) readCounters() *counters {
	s := &counters{map[counter]string{}, map[counter][]string{}}
	generation := map[pool]string{}
	holders := c.holders()
	for _, d := range c.View.Published() { // of the newest generations
		generation[pool{d.Driver, d.Pool}] = d.Slice.Get("spec", "pool", "generation").Text()
		if _, held := holders[d.DeviceName]; held {
			consumes(d, func(of counter, amount manifest.Value) {
				s.used[of] = append(s.used[of], amount.Text())
			})
		}
	}
	for _, o := range c.View.Objects("ResourceSlice") {
		spec := o.Get("spec")
		of := pool{spec.Get("driver").Text(), spec.Get("pool", "name").Text()}
		if spec.Get("pool", "generation").Text() != generation[of] {
			continue
		}
		for set := range spec.Get("sharedCounters").Each() {
			for e := range set.Get("counters").Entries() {
				s.all[counter{of.driver, of.name, set.Get("name").Text(), e.Key()}] = e.Get("value").Text()
			}
		}
	}
	return s
}

// consumes goes through the counters that a device consumes.
func consumes(d check.Published, do func(of counter, amount manifest.Value)) {
	for set := range d.Device.Get("consumesCounters").Each() {
		for e := range set.Get("counters").Entries() {
			do(counter{d.Driver, d.Pool, set.Get("counterSet").Text(), e.Key()}, e.Get("value"))
		}
	}
}

// spent says of which counter a device wants more than the devices in claims leave; nothing, where they leave
// enough, or where the input does not have what there is of it.
func (c *claim) spent(d check.Published) (why Evidence, is bool) {
	s := c.sharedCounters()
	consumes(d, func(of counter, amount manifest.Value) {
		if is || s.all[of] == "" {
			return
		}
		total := check.Sum(slices.Concat(s.used[of], []string{amount.Text()})...)
		if more, ok := check.Compare(total, s.all[of]); ok && more > 0 {
			why, is = seen(amount, "%s: it wants %s of %s in %s, and devices in claims have %s of %s", d.DeviceName, amount.Text(), of.name,
				of.set, abridged(s.used[of]), s.all[of]), true
		}
	})
	return why, is
}

// reckoned says whether it is known what claims leave of what a request's devices share. Several devices of one
// request may be in each other's way, and what is given to several claims is the scheduler's to divide.
func (c *claim) reckoned(r request, d check.Published) bool {
	if d.Device.Get("allowMultipleAllocations").Text() == "true" {
		return false
	}
	single := r.count == 1 && len(c.requests) == 1 && (c.pod == nil || c.pod.Spec.Get("resourceClaims").Len() <= 1)
	known := true
	consumes(d, func(of counter, _ manifest.Value) { known = known && single && c.sharedCounters().all[of] != "" })
	return known
}
