package check

import (
	"fmt"
	"path"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/cdispec"
)

// spec is a file in a CDI directory that runtimes read.
type spec struct {
	entry *capture.Entry
	// last: the directory is the last one, whose devices count.
	last bool
	*cdispec.Spec
	// unread: nobody knows what is in it.
	unread bool
	// mode is that of the file, nil where it is not known.
	mode *capture.Perm
}

// specFiles are the specs of a node.
type specFiles struct {
	all []*spec
	// known: both directories were listed.
	known bool
}

// specs reads the specs of the node once.
func (n *captured) specs() ([]*spec, bool) {
	if n.files == nil {
		n.files = n.readSpecs()
	}
	return n.files.all, n.files.known
}

func (n *captured) readSpecs() *specFiles {
	files := &specFiles{known: true}
	for _, dir := range cdispec.Dirs() {
		entries, listed := n.dir(dir)
		files.known = files.known && listed
		for _, e := range entries {
			if cdispec.Named(e.Path) && e.Kind != capture.Dir {
				files.all = append(files.all, n.readSpec(e, dir == cdispec.RunDir))
			}
		}
	}
	return files
}

func (n *captured) readSpec(e *capture.Entry, last bool) *spec {
	s := &spec{entry: e, last: last, Spec: &cdispec.Spec{}}
	file := e
	for hops := 0; file.Kind == capture.Symlink && !file.Unread && hops < 8; hops++ {
		target := file.Target
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(file.Path), target)
		}
		next, ok := n.c.Entry(target)
		if !ok {
			s.unread = true
			return s
		}
		file = next
	}
	if file.Kind == capture.File {
		s.mode = file.Perm
	}
	switch {
	case file.Failure != nil && file.Failure.Name != "":
		s.Err = fmt.Errorf("it cannot be read: %s", file.Failure.Name)
	case file.Kind != capture.File || file.Unread || file.Failure != nil:
		s.unread = true
	default:
		s.Spec = cdispec.Parse(e.Path, file.Text)
	}
	return s
}
