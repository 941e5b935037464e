package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
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
	entries    []Entry
}

// Entry is a device that kubelet gave a container. Those of pods that have ended stay until it
// allocates again.
type Entry struct{ PodUID, Container, Resource, Device string }

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

// Known says whether there is a record that could be read.
func (c *Checkpoint) Known() bool { return c.known != nil }

// Registered are the healthy devices by resource, each sorted. A resource without any is there too.
// It is nil when nothing is known.
func (c *Checkpoint) Registered() map[string][]string {
	if c.known == nil {
		return nil
	}
	return c.known.registered
}

// Entries are what containers were given, each device once, in kubelet's order.
func (c *Checkpoint) Entries() []Entry {
	if c.known == nil {
		return nil
	}
	return c.known.entries
}

// Read brings the record up to date. Without a file nothing is known; kubelet has not
// written any yet. After an error nothing is known either. What stands in the file's place and
// is none is an error, and so is it that there is no directory: neither says that kubelet knows nothing.
func (c *Checkpoint) Read() error {
	id, err := c.identify()
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

// identify looks at the file without opening it. The zero identity stands for no file in a directory
// that is there.
func (c *Checkpoint) identify() (identity, error) {
	var st unix.Stat_t
	err := unix.Lstat(c.path, &st)
	if errors.Is(err, unix.ENOENT) {
		dir := filepath.Dir(c.path)
		if err := unix.Lstat(dir, &st); err != nil {
			return identity{}, &fs.PathError{Op: "lstat", Path: dir, Err: err}
		}
		return identity{}, nil
	}
	switch {
	case err != nil:
		return identity{}, &fs.PathError{Op: "lstat", Path: c.path, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return identity{}, fmt.Errorf("%s is no regular file, which is what kubelet writes: remove it, and restart kubelet", c.path)
	}
	return identityOf(&st), nil
}

// maxCheckpoint is what a node with the most pods and devices stays far below.
const maxCheckpoint = 8 << 20

// readAtMost reads a file that is not larger than it may be. It waits for nobody, should there be a
// pipe in its place since it was looked at.
func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
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
// devices are in it by NUMA node, one of two nodes twice.
func parseCheckpoint(data []byte) (*record, error) {
	var file struct {
		Data *struct {
			PodDeviceEntries []struct {
				PodUID, ContainerName, ResourceName string
				DeviceIDs                           map[string][]string
			}
			RegisteredDevices map[string][]string
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	if file.Data == nil {
		return nil, errors.New("it has no Data")
	}
	r := &record{registered: file.Data.RegisteredDevices, held: map[string][]string{}}
	seen := map[Entry]bool{}
	for _, e := range file.Data.PodDeviceEntries {
		for _, ids := range e.DeviceIDs {
			r.held[e.ResourceName] = append(r.held[e.ResourceName], ids...)
			for _, id := range ids {
				if g := (Entry{e.PodUID, e.ContainerName, e.ResourceName, id}); !seen[g] {
					seen[g] = true
					r.entries = append(r.entries, g)
				}
			}
		}
	}
	for _, all := range []map[string][]string{r.registered, r.held} {
		for resource, ids := range all {
			all[resource] = slices.Compact(slices.Sorted(slices.Values(ids)))
		}
	}
	return r, nil
}
