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

func (f *feed) next() {
	f.version++
	f.list = nil
	close(f.changed)
	f.changed = make(chan struct{})
}

// sent is what a stream has sent last.
type sent struct {
	version int64
	devices []Device
}

// after waits for a list that a stream has to send, seeing what it sent last. A stream
// that comes late may find that the list is again the one that it sent: that is no news.
func (f *feed) after(ctx context.Context, last sent) (*pluginapi.ListAndWatchResponse, sent, error) {
	for {
		f.mu.Lock()
		if f.version > last.version {
			same := last.version > 0 && slices.Equal(last.devices, f.devices)
			last = sent{version: f.version, devices: f.devices}
			if !same {
				if f.list == nil {
					f.list = response(f.devices)
				}
				list := f.list
				f.mu.Unlock()
				return list, last, nil
			}
		}
		changed := f.changed
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, last, ctx.Err()
		}
	}
}

// healthy is the set of healthy devices in the present list, sorted.
func (f *feed) healthy() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := []string{}
	for _, d := range f.devices {
		if d.Healthy {
			ids = append(ids, d.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
