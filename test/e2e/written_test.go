package e2e

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onWrite calls then when so many things have happened in the CDI directory: a file was made,
// written, closed, renamed or removed. The first two of a new spec are its file and its text. It waits in the kernel, not with Go's poller, so that the plugin
// has hardly gone on by then.
func (n *node) onWrite(events int, then func()) {
	n.t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	n.must(err)
	_, err = unix.InotifyAddWatch(fd, n.Roots.CDI, unix.IN_CREATE|unix.IN_MODIFY|unix.IN_MOVE|unix.IN_DELETE|unix.IN_CLOSE_WRITE)
	n.must(err)
	go func() {
		defer unix.Close(fd)
		b := make([]byte, 4096)
		for events > 0 {
			size, err := unix.Read(fd, b)
			if err != nil && !errors.Is(err, unix.EINTR) {
				n.t.Errorf("wait for a write of a CDI spec: %v", err)
				break
			}
			for at := 0; at < size; events-- {
				at += unix.SizeofInotifyEvent + int((*unix.InotifyEvent)(unsafe.Pointer(&b[at])).Len)
			}
		}
		then()
	}()
}
