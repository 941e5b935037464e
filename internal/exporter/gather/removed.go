package gather

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// removed says that a directory was deleted while it is in use here. A pod keeps the one that was mounted when
// it started: it is empty from then on, and what is made in its place on the host is not in it.
func removed(dir string) error {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil || st.Nlink > 0 {
		return nil //nolint:nilerr // whoever reads what is in it says that
	}
	return fmt.Errorf("look into %s: the host has deleted it, and what was mounted here stays empty: restart the exporter", dir)
}
