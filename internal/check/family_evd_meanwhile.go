package check

import (
	"path"
	"slices"

	"kata-device-plugin/internal/capture"
)

// passing are the errors of what was there a moment ago, or is not there yet.
func passing() []string {
	return []string{"EAGAIN", "EBUSY", "EINTR", "ENODEV", "ENOENT", "ENOTCONN", "ENXIO", "ESTALE", "ETIMEDOUT"}
}

func (n *captured) hasEntries() bool { return len(n.c.Entries()) > 0 }

// readMeanwhile: a directory listed a name, and then there was no such thing, or it could not be
// read for a reason that passes.
func readMeanwhile(w *World) []Finding {
	return w.onNodes((*captured).hasEntries, func(n *captured) []Finding {
		var all []Finding
		for _, dir := range n.c.Entries() {
			if dir.Kind != capture.Dir || dir.Unread || dir.Failure != nil {
				continue
			}
			for _, name := range dir.Names {
				e, known := n.c.Entry(path.Join(dir.Path, name))
				switch {
				case !known:
				case e.Kind == capture.Absent:
					f := n.found("%s of node %s was listed, and was not there any more when it was looked at", e.Path, n.name)
					all = append(all, f.because("%s has the name", dir.Path))
				case e.Kind == capture.Unknown && slices.Contains(passing(), e.Failure.Name):
					f := n.found("%s of node %s could not be looked at for a reason that passes", e.Path, n.name)
					all = append(all, f.because("%s: %s", e.Failure.Op, e.Failure.Name))
				}
			}
		}
		return all
	})
}
