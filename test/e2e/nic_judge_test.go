package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

// judge sees each device list before kubelet does, and holds it against the invariants: no ID
// is missing that was there in this life of the plugin, what is healthy resolves at that
// moment, and nothing is said twice.
type judge struct {
	specs string // the CDI directory

	mu     sync.Mutex
	known  map[string][]string // IDs by resource, in this life of the plugin
	last   map[string]string   // lists by resource, on this connection
	lists  map[string]int
	at     map[string]time.Time // when the last came
	faults []error
}

func newJudge(t testing.TB, specs string) *judge {
	j := &judge{specs: specs, lists: map[string]int{}, at: map[string]time.Time{}}
	j.life()
	t.Cleanup(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if err := errors.Join(j.faults...); err != nil {
			t.Error(err)
		}
	})
	return j
}

// life begins a new life of the plugin.
func (j *judge) life() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.known, j.last = map[string][]string{}, map[string]string{}
}

// connection begins new connections: each begins with the list as it is.
func (j *judge) connection() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = map[string]string{}
}

// count is how many lists of a resource there were, and when the last one came.
func (j *judge) count(resource string) (int, time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lists[resource], j.at[resource]
}

// listed is kubelet's Options.Listed.
func (j *judge) listed(resource string, list *api.ListAndWatchResponse) {
	now := time.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	text := list.String()
	first := j.last[resource] == ""
	if j.last[resource] == text {
		j.blame("%s was said twice: %s", resource, text)
	}
	var ids, healthy []string
	for _, d := range list.GetDevices() {
		ids = append(ids, d.GetID())
		if d.GetHealth() == api.Healthy {
			healthy = append(healthy, d.GetID())
		}
	}
	for _, id := range j.known[resource] {
		if !slices.Contains(ids, id) {
			j.blame("%s was withdrawn from %s", id, resource)
		}
	}
	// What leaves goes from the spec before the list says so. To a kubelet that comes back
	// between the two the first list is the last one.
	if !first || j.known[resource] == nil {
		j.resolve(resource, healthy)
	}
	j.known[resource], j.last[resource], j.at[resource] = ids, text, now
	j.lists[resource]++
}

// resolve checks that the CDI spec has the devices that have nodes.
func (j *judge) resolve(resource string, healthy []string) {
	switch {
	case len(healthy) == 0, strings.HasSuffix(resource, "net"), strings.HasSuffix(resource, "netdevice"), strings.HasSuffix(resource, "nics"), strings.HasSuffix(resource, "sf"):
		return // among these are devices that have none
	}
	spec, err := cdi.ReadSpec(filepath.Join(j.specs, "kata.nic."+strings.ReplaceAll(resource, "/", "-")+".json"), 0)
	if err != nil {
		j.blame("%s was announced without a CDI spec: %w", resource, err)
		return
	}
	for _, id := range healthy {
		if spec.GetDevice(id) == nil {
			j.blame("%s of %s was announced healthy, and the CDI spec has no such device", id, resource)
		}
	}
}

func (j *judge) blame(format string, args ...any) {
	j.faults = append(j.faults, fmt.Errorf(format, args...))
}
