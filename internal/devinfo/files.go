//go:build unix

package devinfo

// The files are on nodes. What they say is needed wherever a captured node is looked at.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/wholefile"
)

// mode is that of the old plugin's files: nobody has a reason to edit one.
const mode = 0o444

// Files are the device-info files in a directory. Write and Sync must not run beside each
// other: what Sync keeps was decided before it began.
type Files struct{ Dir string }

// Write makes the file of a device say what info says. A file that does so already is left
// alone, since Multus may be reading it.
func (d Files) Write(resource, id string, info Info) error {
	wrap := func(err error) error { return fmt.Errorf("write device-info of %s: %w", id, err) }
	if err := check(resource, id, info); err != nil {
		return wrap(err)
	}
	data, err := json.Marshal(info)
	if err != nil {
		return wrap(err)
	}
	path := filepath.Join(d.Dir, FileName(resource, id))
	if same(path, data) {
		return nil
	}
	if err := os.MkdirAll(d.Dir, 0o755); err != nil {
		return wrap(err)
	}
	if err := wholefile.Write(path, data, mode); err != nil {
		return wrap(err)
	}
	return nil
}

// same says whether a file is as Write would leave it.
func same(path string, data []byte) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != mode || info.Size() != int64(len(data)) {
		return false
	}
	old, err := os.ReadFile(path)
	return err == nil && bytes.Equal(old, data)
}

// Writable makes the directory, and says what keeps files from being made in it as far as that
// can be seen without making one.
func (d Files) Writable() error {
	err := os.MkdirAll(d.Dir, 0o755)
	if err == nil {
		err = unix.Access(d.Dir, unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return fmt.Errorf("write device-info to %s: %w", d.Dir, err)
	}
	return nil
}

// Probe makes a small file and removes it: what cannot be seen, such as a full disk, is tried.
func (d Files) Probe() error {
	f, err := os.CreateTemp(d.Dir, ".probe-")
	if err != nil {
		return fmt.Errorf("write device-info to %s: %w", d.Dir, err)
	}
	_, err = f.Write(make([]byte, 512))
	if err := errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return fmt.Errorf("write device-info to %s: %w", d.Dir, err)
	}
	return nil
}

// Has says whether a device has a file.
func (d Files) Has(resource, id string) bool {
	_, err := os.Lstat(filepath.Join(d.Dir, FileName(resource, id)))
	return err == nil
}

// Sync removes the files of devices that no pod holds. keep has the resources of the
// configuration, each with the devices whose files stay. Files of other resources and of
// other owners are left alone, and so are those of running pods, whoever wrote them: the
// file is needed whenever a sandbox is made anew. It goes on after an error.
func (d Files) Sync(keep map[string][]string) error {
	entries, err := os.ReadDir(d.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list device-info files: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !e.Type().IsRegular() || !unused(e.Name(), keep) && !unfinished(e.Name(), keep) {
			continue
		}
		if err := os.Remove(filepath.Join(d.Dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove unused device-info: %w", err))
		}
	}
	return errors.Join(errs...)
}

// unused says whether a file is one of a resource, of a device that nobody keeps. Two
// resources may have one name for their files, such as a-b/c and a/b-c.
func unused(name string, keep map[string][]string) bool {
	ours := false
	for resource, ids := range keep {
		id, ok := device(resource, name)
		if ok && slices.Contains(ids, id) {
			return false
		}
		ours = ours || ok
	}
	return ours
}

// unfinished says whether a file is what Write leaves when it is killed before it renames.
func unfinished(name string, keep map[string][]string) bool {
	rest, hidden := strings.CutPrefix(name, ".")
	begin, _, ok := strings.Cut(rest, suffix)
	if !hidden || !ok {
		return false
	}
	for resource := range keep {
		if _, ours := device(resource, begin+suffix); ours {
			return true
		}
	}
	return false
}
