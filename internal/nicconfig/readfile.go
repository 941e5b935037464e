package nicconfig

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// largest is far more than a file with a pool for each device of a node has.
const largest = 4 << 20

// ReadFile reads a file that is not larger than it may be. What is no regular file is refused
// before it is opened: a pipe would never end.
func ReadFile(path string) (File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return File{}, fmt.Errorf("read the configuration: %w", err)
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("read the configuration: %s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return File{}, fmt.Errorf("read the configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err != nil {
		return File{}, fmt.Errorf("read the configuration: %w", err)
	}
	if len(data) > largest {
		return File{}, fmt.Errorf("read the configuration: %s has more than %d bytes", path, largest)
	}
	return File{Name: path, Data: data}, nil
}

// AsksProfile says whether a pool selects by DDP package, which the firmware has to be asked for.
func (c *Config) AsksProfile() bool {
	return slices.ContainsFunc(c.Pools, func(p Pool) bool {
		return slices.ContainsFunc(p.Selectors, func(s Selector) bool { return len(s.DDPProfiles) > 0 })
	})
}
