package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"kata-device-plugin/internal/pci"
)

// node holds the node at a path against the number that a file dev below /sys states. Which
// of the two comes first is the kernel's affair: dev does (drivers/base/core.c, device_add),
// so a number without a node is a state that passes, as is a device without a number.
func (l *look) node(r *reader, path, dev string, old []CharDevice) CharDevice {
	c := CharDevice{Path: path}
	text, err := fs.ReadFile(r.sys, dev)
	if gone(err) {
		r.torn = true
		c.Fault = "no /sys/" + dev
		return c
	}
	var major, minor uint32
	if err == nil {
		major, minor, err = pci.ParseDevNumber(string(text))
	}
	if err == nil {
		var n DevFile
		if n, err = l.src.Dev.Lstat(path); err == nil {
			c.Fault = n.differs(path, major, minor, "/sys/"+dev)
			return c
		}
		if absent(err) {
			r.torn = true
			c.Fault = "no node " + path
			return c
		}
	}
	r.errs = append(r.errs, fmt.Errorf("examine %s: %w", path, err))
	if i := slices.IndexFunc(old, func(c CharDevice) bool { return c.Path == path }); i >= 0 {
		return old[i]
	}
	c.Fault = err.Error()
	return c
}

// numbered examines the nodes of the devices in a directory, which are called by one word and
// a number, as their nodes in /dev are.
func (l *look) numbered(r *reader, dir, word string, old []CharDevice) []CharDevice {
	names, ok := r.list(dir)
	if !ok {
		return old
	}
	var all []CharDevice
	for _, name := range names {
		if number, ok := strings.CutPrefix(name, word); ok && isNumber(number) {
			all = append(all, l.node(r, "/dev/"+name, r.dir+"/"+dir+"/"+name+"/dev", old))
		}
	}
	return all
}

// isNumber says whether a text is a number in the kernel's spelling.
func isNumber(text string) bool {
	_, err := parseNumber(text)
	return err == nil && !strings.HasSuffix(text, "\n")
}

// differs says what is wrong with a node of which a number is known.
func (n DevFile) differs(path string, major, minor uint32, source string) string {
	switch {
	case !n.isChar():
		return path + " is a " + n.kind()
	case n.Major != major || n.Minor != minor:
		return fmt.Sprintf("%s is %d:%d, %s says %d:%d", path, n.Major, n.Minor, source, major, minor)
	}
	return ""
}

// absent says whether an error of lstat means that there is nothing.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) }

// HasNode says whether a node that is handed out is there now: a character device at its
// path, which is one below /dev.
func (src Source) HasNode(name string) bool {
	if !strings.HasPrefix(name, "/dev/") || path.Clean(name) != name {
		return false
	}
	n, err := src.Dev.Lstat(name)
	return err == nil && n.isChar()
}

// shared examines the shared nodes. Their drivers are misc devices, whose names are those of
// the nodes. Where the module is not loaded sysfs has no number, but there may be a node all
// the same, which loads it when it is opened.
func (l *look) shared() {
	l.next.Shared = make(map[string]CharDevice, len(SharedNodes()))
	for _, name := range SharedNodes() {
		c, err := l.sharedNode(name)
		if err != nil {
			l.next.Unread = append(l.next.Unread, fmt.Errorf("examine %s: %w", name, err))
			if was, ok := l.prev.Shared[name]; ok {
				c = was
			}
		}
		l.next.Shared[name] = c
	}
}

func (l *look) sharedNode(name string) (CharDevice, error) {
	c := CharDevice{Path: name}
	n, err := l.src.Dev.Lstat(name)
	if absent(err) {
		c.Fault = "no node " + name
		return c, nil
	}
	dev := "class/misc/" + path.Base(name) + "/dev"
	major, minor := n.Major, n.Minor
	if err == nil {
		var text []byte
		if text, err = fs.ReadFile(l.src.Sys, dev); gone(err) {
			err = nil
		} else if err == nil {
			major, minor, err = pci.ParseDevNumber(string(text))
		}
	}
	if err != nil {
		c.Fault = err.Error()
		return c, err
	}
	c.Fault = n.differs(name, major, minor, "/sys/"+dev)
	return c, nil
}
