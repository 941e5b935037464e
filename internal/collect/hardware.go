package collect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sysfs"
)

// hardware looks at the node with everything wanted that a program may want, and notes what the
// look reads. A read in sysfs may wait for a driver, and cannot be broken off: when ctx ends, it
// is left to itself, and what was read until then stays.
func (n *node) hardware(ctx context.Context) {
	roots := n.roots()
	sys, err := sysfs.Open(roots.Sys)
	if err != nil {
		n.c.Miss("/sys", err)
		return
	}
	r := &recording{c: n.c}
	source := host.Source{
		Sys: &sysRecorder{r, sys, map[string]bool{".": true}}, Dev: devRecorder{r, devfs.Dir(roots.Dev)}, Links: n.Links,
	}
	done := make(chan *host.Snapshot, 1)
	go func() {
		defer sys.Close()
		done <- look(source, r)
	}()
	select {
	case s := <-done:
		if s.LinksErr == nil {
			n.c.Links = s.Links
		} else {
			n.c.LinksErr = s.LinksErr.Error()
		}
	case <-ctx.Done():
		n.c.Miss("/sys and /dev", fmt.Errorf("there was no time left while reading %s: %w", r.stop(), ctx.Err()))
	}
}

// look wants everything.
func look(source host.Source, r *recording) *host.Snapshot {
	all := func(host.Identity) bool { return true }
	source.Wanted, source.Network, source.PCIeLink = all, all, all
	s := source.Look(nil)
	// What is in these directories and belongs to nothing that was found is of interest too.
	for _, dir := range []string{"/dev/vfio", host.DevicesDir, "/dev/infiniband"} {
		if _, err := source.Dev.List(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			r.miss(dir, err)
		}
	}
	return s
}
