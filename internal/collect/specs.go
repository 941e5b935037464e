package collect

import (
	"context"
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/cdispec"
	"kata-device-plugin/internal/draname"
)

// specs notes the CDI specs of the node, and the locks that are beside them. Of other files it
// notes that they are there: readers of specs pass over them.
func (n *node) specs(context.Context) {
	for _, dir := range cdispec.Dirs() {
		for _, name := range n.list(dir) {
			at := path.Join(dir, name)
			switch {
			case cdispec.Named(name):
				n.file(at, maxFile, nil)
			case strings.HasPrefix(name, "kata.") && path.Ext(name) == ".lock":
				n.lock(at)
			default:
				n.examine(at)
			}
		}
	}
}

// inSpecDir says whether a file is where CDI specs are.
func inSpecDir(name string) bool { return slices.Contains(cdispec.Dirs(), path.Dir(name)) }

// claims notes the DRA driver's records of the claims that hold hardware.
func (n *node) claims(context.Context) {
	dir := path.Join(n.Kubelet, "plugins", draname.Driver)
	if len(n.list(dir)) == 0 {
		return
	}
	for _, name := range n.list(path.Join(dir, "claims")) {
		at := path.Join(dir, "claims", name)
		if path.Ext(name) == ".json" || strings.Contains(name, ".damaged.") {
			n.file(at, maxFile, nil)
		} else {
			n.examine(at)
		}
	}
}

// lock notes a lock with the names of those who have it.
func (n *node) lock(at string) {
	e := n.examine(at)
	if e == nil || e.Kind != capture.File {
		return
	}
	e.Kind = capture.Lock
	holders, held, err := n.holders(at)
	switch {
	case err != nil:
		e.Unread, e.Failure = false, &capture.Failure{Op: "ask", Text: n.told(err).Error()}
		n.c.Miss(at, n.told(err))
	case held:
		e.Unread, e.State, e.Text = false, capture.Held, []byte(strings.Join(holders, ", "))
	default:
		e.Unread, e.State = false, capture.Free
	}
	n.c.Add(*e)
}
