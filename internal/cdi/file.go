package cdi

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
	specs "tags.cncf.io/container-device-interface/specs-go"

	"kata-device-plugin/internal/wholefile"
)

// mode lets container runtimes read the spec that do not run as root.
const mode = 0o644

// File is the spec file of one kind in a CDI directory. InStep and Resolves may be called
// concurrently, Sync and Sweep by one caller and beside no other call.
type File struct {
	dir, name, kind string

	devices []Device // what data says
	data    []byte   // what the file has to hold; nil for no file
	synced  bool     // data was true of the disk, as seen last
	onDisk  print    // the file then
}

// NewFile is the spec file of a kind, of an owner's as FileName has it. Nothing is read or
// written yet.
func NewFile(dir, owner, kind string) *File {
	return &File{dir: dir, name: FileName(owner, kind), kind: kind}
}

// Path is where the spec is.
func (f *File) Path() string { return filepath.Join(f.dir, f.name) }

// Exists says whether there is something at Path.
func (f *File) Exists() bool {
	p, err := printOf(f.Path(), unix.Lstat)
	return err == nil && p != (print{})
}

// Sync makes the file say what devices says, if it does not yet, and reports whether
// it had to write. Without devices there is no file: Kata's Rust shim refuses a spec
// with an empty list, and with it every CDI device on the node. An edited, truncated
// or deleted file is put right. After an error the file is as it was, or whole.
func (f *File) Sync(devices []Device) (changed bool, err error) {
	if !f.synced || !slices.EqualFunc(devices, f.devices, Device.equal) {
		data := []byte(nil)
		if len(devices) > 0 {
			if data, err = encode(f.kind, devices); err != nil {
				return false, err
			}
		}
		f.devices, f.data, f.synced = slices.Clone(devices), data, false
	}
	if f.InStep() {
		return false, nil
	}
	f.synced = false
	if same, err := f.compare(); err != nil || same {
		return false, err
	}
	if f.data == nil {
		err = f.remove()
	} else {
		err = f.write()
	}
	if err != nil {
		return false, errors.Join(err, f.disown())
	}
	// Read back what is there now: somebody may have been quicker.
	_, err = f.compare()
	return true, err
}

// maxOwn bounds what is read of an own spec of an earlier life.
const maxOwn = 4 << 20

// Read returns the devices of the spec that is on disk, whoever wrote it. There are none where
// it cannot be read: what it said is not known then.
func (f *File) Read() []Device {
	if p, err := printOf(f.Path(), unix.Lstat); err != nil || p.mode&unix.S_IFMT != unix.S_IFREG || p.size > maxOwn {
		return nil
	}
	data, err := os.ReadFile(f.Path())
	if err != nil {
		return nil
	}
	var spec specs.Spec
	if err := json.Unmarshal(data, &spec); err != nil || spec.Kind != f.kind {
		return nil
	}
	var all []Device
	for i := range spec.Devices {
		all = append(all, deviceOf(&spec.Devices[i]))
	}
	return all
}

// deviceOf is a device of a spec.
func deviceOf(d *specs.Device) Device {
	on := Device{Name: d.Name}
	for _, n := range d.ContainerEdits.DeviceNodes {
		if n == nil {
			continue // null, which is no node
		}
		on.Nodes = append(on.Nodes, Node{Path: n.Path, Host: n.HostPath, Permissions: n.Permissions})
	}
	return on
}

// InStep says whether the file on disk is still the one that the last Sync made or
// found. It costs one system call.
func (f *File) InStep() bool {
	p, err := printOf(f.Path(), unix.Lstat)
	return f.synced && err == nil && p == f.onDisk
}

// Resolves says whether the spec names the device with those nodes.
func (f *File) Resolves(d Device) bool { return slices.ContainsFunc(f.devices, d.equal) }

// compare reads the file and holds it against what it has to be.
func (f *File) compare() (same bool, err error) {
	p, err := printOf(f.Path(), unix.Lstat)
	if err != nil {
		return false, fmt.Errorf("look at CDI spec: %w", err)
	}
	if f.data == nil {
		same = p == print{}
	} else if p.mode == unix.S_IFREG|mode && p.size == int64(len(f.data)) {
		data, err := os.ReadFile(f.Path())
		same = err == nil && bytes.Equal(data, f.data)
	}
	if same {
		f.onDisk, f.synced = p, true
	}
	return same, nil
}

func (f *File) write() error {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return fmt.Errorf("write CDI spec %s: %w", f.Path(), err)
	}
	// The temporary name has no suffix that a CDI reader looks for. What is left is swept by the
	// next start.
	if err := wholefile.Write(f.Path(), f.data, mode); err != nil {
		return fmt.Errorf("write CDI spec %s: %w", f.Path(), err)
	}
	return nil
}

// disown removes a file that could not be replaced, if it is not true any more: to name no
// device is better than to name another one. It takes no room on the file system.
func (f *File) disown() error {
	spec, err := readSpec(f.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	untrue := func(d specs.Device) bool { return !f.Resolves(deviceOf(&d)) }
	if err == nil && !slices.ContainsFunc(spec.Devices, untrue) {
		return nil
	}
	return f.remove()
}

func (f *File) remove() error {
	if err := os.Remove(f.Path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove CDI spec: %w", err)
	}
	return wholefile.SyncDir(f.dir)
}

// Sweep removes temporary files that an earlier life left when it was killed between
// writing and renaming. Only the holder of the kind's lock may call it.
func (f *File) Sweep() error {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sweep CDI directory: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+f.name) && e.Type().IsRegular() {
			errs = append(errs, os.Remove(filepath.Join(f.dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// print tells whether a file is the one that was seen before. The zero value stands
// for no file.
type print struct {
	dev, ino     uint64
	mode         uint32
	size         int64
	mtime, ctime unix.Timespec
}

func printOf(path string, stat func(string, *unix.Stat_t) error) (print, error) {
	var st unix.Stat_t
	err := stat(path, &st)
	if errors.Is(err, unix.ENOENT) {
		return print{}, nil
	}
	if err != nil {
		return print{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return print{dev: st.Dev, ino: st.Ino, mode: st.Mode, size: st.Size, mtime: st.Mtim, ctime: st.Ctim}, nil
}
