package kubelet

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// CheckpointName is kubelet's record of devices in the device plugin directory. It is
// written anew with every device list that arrives and every allocation.
const CheckpointName = "kubelet_internal_checkpoint"

// Checkpoint reads kubelet's record, when it has changed.
type Checkpoint struct {
	path  string
	read  identity // of the file that was read last; kubelet makes a new one each time
	known *record
}

// record is what is read of the file.
type record struct {
	registered map[string][]string // healthy devices by resource, sorted
	held       map[string][]string // devices that containers have, by resource, sorted
}

// NewCheckpoint is the record in a device plugin directory.
func NewCheckpoint(dir string) *Checkpoint {
	return &Checkpoint{path: filepath.Join(dir, CheckpointName)}
}

// Healthy returns the devices of a resource that kubelet believes to be healthy, sorted.
// It reports false when kubelet has said nothing of the resource.
func (c *Checkpoint) Healthy(resource string) ([]string, bool) {
	if c.known == nil {
		return nil, false
	}
	ids, ok := c.known.registered[resource]
	return ids, ok
}

// Held returns the devices that containers have, by resource, each sorted. It is nil when
// nothing is known. A container that has ended may be among them: kubelet drops it when it
// allocates the next device.
func (c *Checkpoint) Held() map[string][]string {
	if c.known == nil {
		return nil
	}
	return c.known.held
}

// Read brings the record up to date. Without a file nothing is known; kubelet has not
// written any yet. After an error nothing is known either.
func (c *Checkpoint) Read() error {
	id, err := identifyFile(c.path)
	if err == nil && c.known != nil && id == c.read {
		return nil
	}
	c.known = nil
	if err == nil && id == (identity{}) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read kubelet's checkpoint: %w", err)
	}
	data, err := readAtMost(c.path, maxCheckpoint)
	if err != nil {
		return fmt.Errorf("read kubelet's checkpoint: %w", err)
	}
	known, err := parseCheckpoint(data)
	if err != nil {
		return fmt.Errorf("read kubelet's checkpoint %s: %w", c.path, err)
	}
	c.known, c.read = known, id
	return nil
}

// maxCheckpoint is what a node with the most pods and devices stays far below.
const maxCheckpoint = 8 << 20

// readAtMost reads a file that is not larger than it may be.
func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return data, err
}

// parseCheckpoint reads the JSON of kubelet's package devicemanager/checkpoint. A container's
// devices are in it by NUMA node.
func parseCheckpoint(data []byte) (*record, error) {
	var file struct {
		Data struct {
			PodDeviceEntries []struct {
				ResourceName string
				DeviceIDs    map[string][]string
			}
			RegisteredDevices map[string][]string
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	r := &record{registered: file.Data.RegisteredDevices, held: map[string][]string{}}
	for _, e := range file.Data.PodDeviceEntries {
		for _, ids := range e.DeviceIDs {
			r.held[e.ResourceName] = append(r.held[e.ResourceName], ids...)
		}
	}
	for _, all := range []map[string][]string{r.registered, r.held} {
		for resource, ids := range all {
			all[resource] = slices.Compact(slices.Sorted(slices.Values(ids)))
		}
	}
	return r, nil
}
