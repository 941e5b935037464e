package gather

import (
	"time"

	"kata-device-plugin/internal/kubelet"
	"kata-device-plugin/internal/nodestate"
)

// readRecord brings kubelet's record of devices up to date. Without a file in its directory kubelet knows
// of no plugin.
func readRecord(c *kubelet.Checkpoint, to *nodestate.Reading[nodestate.KubeletRecord], dir string, now time.Time) {
	err := removed(dir)
	if err == nil {
		err = c.Read()
	}
	if err == nil && !c.Known() {
		to.Absent(now)
		return
	}
	r := nodestate.KubeletRecord{Registered: c.Registered()}
	for _, e := range c.Entries() {
		r.Given = append(r.Given, nodestate.Given{UID: e.PodUID, Container: e.Container, Resource: e.Resource, ID: e.Device})
	}
	to.Took(r, err, now)
}
