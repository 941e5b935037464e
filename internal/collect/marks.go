package collect

import (
	"bytes"
	"context"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/capture"
)

// enforceFile says whether SELinux refuses what its policy does not allow. It exists where SELinux is on.
const enforceFile = "/sys/fs/selinux/enforce"

// selinux notes whether SELinux is on. Without it nobody goes by the labels of files.
func (n *node) selinux(context.Context) {
	const one = 16
	n.file(enforceFile, one, nil)
	e, ok := n.c.Entry(enforceFile)
	n.labelled = ok && e.Kind == capture.File
}

// mark adds to an entry what only some nodes and files are asked: the label that SELinux knows it
// by, and when a file was written, which says something beside when the kernel was started.
func (n *node) mark(e *capture.Entry, info fs.FileInfo) {
	if !n.c.Meta.Started.IsZero() && inSpecDir(e.Path) && e.Kind == capture.File {
		e.Modified = info.ModTime().UTC().Truncate(time.Second)
	}
	if !n.labelled {
		return
	}
	const longest = 256
	label := make([]byte, longest)
	size, err := unix.Lgetxattr(n.real(e.Path), "security.selinux", label)
	if err != nil {
		return // it has none, which is no answer to whether it should
	}
	e.Label = string(bytes.TrimRight(label[:size], "\x00"))
}

// started is when the kernel was, zero where /proc/stat does not say.
func started(stat []byte) time.Time {
	for line := range bytes.Lines(stat) {
		text, ok := bytes.CutPrefix(line, []byte("btime "))
		if seconds, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); ok && err == nil && seconds > 0 {
			return time.Unix(seconds, 0).UTC()
		}
	}
	return time.Time{}
}
