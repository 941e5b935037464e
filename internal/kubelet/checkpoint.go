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
	path       string
	read       identity // of the file that was read last; kubelet makes a new one each time
	registered map[string][]string
}

// NewCheckpoint is the record in a device plugin directory.
func NewCheckpoint(dir string) *Checkpoint {
	return &Checkpoint{path: filepath.Join(dir, CheckpointName)}
}

// Healthy returns the devices of a resource that kubelet believes to be healthy, sorted.
// It reports false when kubelet has said nothing of the resource.
func (c *Checkpoint) Healthy(resource string) ([]string, bool) {
	ids, ok := c.registered[resource]
	return ids, ok
}

// Read brings the record up to date. Without a file nothing is known; kubelet has not
// written any yet. After an error nothing is known either.
func (c *Checkpoint) Read() error {
	id, err := identifyFile(c.path)
	if err == nil && c.registered != nil && id == c.read {
		return nil
	}
	c.registered = nil
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
	registered, err := parseCheckpoint(data)
	if err != nil {
		return fmt.Errorf("read kubelet's checkpoint %s: %w", c.path, err)
	}
	c.registered, c.read = registered, id
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

// parseCheckpoint reads the JSON of kubelet's package devicemanager/checkpoint. The
// allocations in it are passed over.
func parseCheckpoint(data []byte) (map[string][]string, error) {
	var file struct {
		Data struct {
			RegisteredDevices map[string][]string
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	registered := make(map[string][]string, len(file.Data.RegisteredDevices))
	for resource, ids := range file.Data.RegisteredDevices {
		registered[resource] = slices.Compact(slices.Sorted(slices.Values(ids)))
	}
	return registered, nil
}
