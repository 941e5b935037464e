package kubelet

import (
	"context"
	"slices"
	"sync"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// feed holds the list that kubelet is to have. Streams wait on it; a stream that is
// slow skips the lists in between, since each one replaces the one before.
type feed struct {
	mu      sync.Mutex
	devices []Device
	version int64                           // 0: nothing to announce yet
	list    *pluginapi.ListAndWatchResponse // rendered on demand
	changed chan struct{}                   // closed with the next version
}

func newFeed() *feed { return &feed{changed: make(chan struct{})} }

// set replaces the list, and reports whether it is another one.
func (f *feed) set(devices []Device) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.version > 0 && slices.Equal(devices, f.devices) {
		return false
	}
	f.devices = slices.Clone(devices)
	f.next()
	return true
}

// repeat makes every stream send the present list once more.
func (f *feed) repeat() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.version > 0 {
		f.next()
	}
}

func (f *feed) next() {
	f.version++
	f.list = nil
	close(f.changed)
	f.changed = make(chan struct{})
}

// after waits for a version later than seen.
func (f *feed) after(ctx context.Context, seen int64) (*pluginapi.ListAndWatchResponse, int64, error) {
	for {
		f.mu.Lock()
		if f.version > seen {
			if f.list == nil {
				f.list = response(f.devices)
			}
			list, version := f.list, f.version
			f.mu.Unlock()
			return list, version, nil
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// healthy is the set of healthy devices in the present list, sorted, and its version.
func (f *feed) healthy() ([]string, int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := []string{}
	for _, d := range f.devices {
		if d.Healthy {
			ids = append(ids, d.ID)
		}
	}
	slices.Sort(ids)
	return ids, f.version
}
