package gather

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync/atomic"
	"time"

	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/nodestate"
)

// rules reads the configuration of nic-device-plugin when it has changed. One that cannot be used
// leaves the rules as they were, which is what the plugin does.
type rules struct {
	paths  []string
	prefix string

	data    map[string][]byte // what was read last, by path
	known   *nic.Rules        // nil while there has been none
	profile atomic.Bool       // a pool selects by DDP package
}

func newRules(paths []string, prefix string) *rules { return &rules{paths: paths, prefix: prefix} }

func (r *rules) read(to *nodestate.Facts, now time.Time) {
	if len(r.paths) == 0 {
		to.NICRules.Absent(now)
		return
	}
	pools, err := r.load(to.NICRules.Value)
	to.NICRules.Took(pools, err, now)
}

// load reads the files that there are, and returns the number of pools.
func (r *rules) load(before int) (int, error) {
	now := map[string][]byte{}
	var files []nicconfig.File
	for _, path := range r.paths {
		file, err := nicconfig.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		now[path] = file.Data
		files = append(files, file)
	}
	if r.known != nil && maps.EqualFunc(now, r.data, bytes.Equal) {
		return before, nil
	}
	config, err := nicconfig.ParseFiles(files, nicconfig.Options{Prefix: r.prefix})
	if err != nil {
		return 0, fmt.Errorf("read the configuration of NICs: %w", err)
	}
	r.data, r.known = now, nic.New(config)
	r.profile.Store(config.AsksProfile())
	return len(config.Pools) + len(config.Shared), nil
}
