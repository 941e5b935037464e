package facts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Events notes what a watcher of VFIO's nodes is told, which the product waits for. The kernel queues
// an event within the system call that causes it, so nothing needs waiting for.
type Events struct {
	root  string
	file  *os.File
	names map[int32]string
}

// watched are the directories that the product watches. The second comes and goes.
func watched() []string { return []string{"dev/vfio", "dev/vfio/devices"} }

// NewEvents begins to watch the node below a directory.
func NewEvents(root string) (*Events, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("start inotify: %w", err)
	}
	e := &Events{root: root, file: os.NewFile(uintptr(fd), "inotify"), names: map[int32]string{}}
	return e, e.watch()
}

// Close ends the watch.
func (e *Events) Close() error { return e.file.Close() }

// watch watches what is there now.
func (e *Events) watch() error {
	const mask = unix.IN_CREATE | unix.IN_ATTRIB | unix.IN_DELETE | unix.IN_DELETE_SELF | unix.IN_MOVE | unix.IN_MOVE_SELF
	for _, name := range watched() {
		wd, err := unix.InotifyAddWatch(int(e.file.Fd()), filepath.Join(e.root, name), mask)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return fmt.Errorf("watch %s: %w", name, err)
		}
		e.names[int32(wd)] = name
	}
	return nil
}

// Take returns the events since the last call, such as "dev/vfio CREATE|ISDIR devices".
func (e *Events) Take() ([]string, error) {
	b := make([]byte, 1<<16)
	size, err := unix.Read(int(e.file.Fd()), b)
	if errors.Is(err, unix.EAGAIN) {
		size, err = 0, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	all := []string{}
	for b = b[:size]; len(b) >= unix.SizeofInotifyEvent; {
		wd, mask, length := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:]), binary.NativeEndian.Uint32(b[12:])
		name := strings.TrimRight(string(b[unix.SizeofInotifyEvent:][:length]), "\x00")
		all = append(all, strings.TrimSpace(e.names[wd]+" "+maskText(mask)+" "+name))
		b = b[unix.SizeofInotifyEvent+length:]
	}
	return all, e.watch()
}

func maskText(mask uint32) string {
	var all []string
	for _, m := range []struct {
		bit  uint32
		name string
	}{
		{unix.IN_CREATE, "CREATE"}, {unix.IN_ATTRIB, "ATTRIB"}, {unix.IN_DELETE, "DELETE"}, {unix.IN_DELETE_SELF, "DELETE_SELF"},
		{unix.IN_IGNORED, "IGNORED"}, {unix.IN_MOVE | unix.IN_MOVE_SELF, "MOVE"}, {unix.IN_Q_OVERFLOW, "OVERFLOW"}, {unix.IN_ISDIR, "ISDIR"},
	} {
		if mask&m.bit != 0 {
			all = append(all, m.name)
		}
	}
	return strings.Join(all, "|")
}
