package gather

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/cdispec"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nodestate"
)

// owners begin the names of the specs of this project's device plugins.
func owners() []string { return []string{"kata.", "kata.nic."} }

// specs reads and judges the spec files of a directory.
type specs struct {
	dir  string
	dev  host.DevFS // with the nodes of VFIO
	read *cdi.Neighbours
	own  map[string]ownSpec // by file name
}

func newSpecs(dir string, dev host.DevFS) *specs {
	return &specs{dir: dir, dev: dev, read: cdi.NewNeighbours(dir), own: map[string]ownSpec{}}
}

// readSpecs reads those of all directories that runtimes do. One that cannot be read may have any name which those
// do not have that win over it, and of the last nothing may be missing.
func readSpecs(to *nodestate.Reading[[]nodestate.Spec], dirs []*specs, names []declare.Name, now time.Time) {
	var all []nodestate.Spec
	var unread error
	for rank, of := range dirs {
		here, err := of.readAll(names)
		if err != nil {
			unread = errors.Join(unread, err)
			here = []nodestate.Spec{{Path: of.dir, State: nodestate.SpecUnexamined}}
		}
		if err != nil && rank == len(dirs)-1 {
			to.Took(nil, unread, now)
			return
		}
		for i := range here {
			here[i].Rank = rank
		}
		all = append(all, here...)
	}
	to.TookPart(all, unread, now)
}

// readAll reads and judges the files.
func (s *specs) readAll(names []declare.Name) ([]nodestate.Spec, error) {
	if err := removed(s.dir); err != nil {
		return nil, err
	}
	files, err := s.read.Read(nil)
	if errors.Is(err, fs.ErrPermission) { // the process has confined itself to what there was
		return nil, fmt.Errorf("%w: if it was made after the exporter was started, restart the exporter", err)
	}
	if err != nil {
		return nil, err
	}
	return s.judge(files, names), nil
}

// ownSpec is a spec of this project: it is read whole, however long it is.
type ownSpec struct {
	info    fs.FileInfo
	devices map[string][]string
}

// judge makes what is known of specs of what was read of them. Of those of this project's plugins
// the nodes are read too.
func (s *specs) judge(files []cdi.Foreign, names []declare.Name) []nodestate.Spec {
	kinds := map[string]ownName{}
	for _, n := range names {
		for _, owner := range owners() {
			kinds[cdi.FileName(owner, n.Resource)] = ownName{owner, n.Resource}
		}
	}
	own := map[string]ownSpec{}
	all := make([]nodestate.Spec, 0, len(files))
	for i := range files {
		f := &files[i]
		info, err := os.Stat(f.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has gone since
		}
		spec := judged(f, info)
		spec.Stale = s.renumbered(f)
		base := filepath.Base(f.Path)
		if _, claims := draname.SpecClaim(base); claims && spec.State == nodestate.SpecUnexamined {
			spec.Kind = draname.ClaimKind
		}
		if k, ours := kinds[base]; ours && f.Err == nil {
			if spec.Kind == "" {
				spec.Kind = k.kind // nobody else has files of that name
			}
			if f.Unread == nil && info != nil {
				own[base] = s.readOwn(base, info, k)
				own[base].enter(&spec, k.kind)
			}
		}
		all = append(all, spec)
	}
	s.own = own
	return all
}

// judged is what is known of a file of anybody. info is nil where that could not be had.
func judged(f *cdi.Foreign, info fs.FileInfo) nodestate.Spec {
	spec := nodestate.Spec{Path: f.Path, Kind: f.Kind, State: state(f), Devices: map[string][]string{}}
	if info == nil {
		spec.State = nodestate.SpecUnexamined
	} else {
		spec.Private = cdispec.Private(info.Mode())
	}
	switch {
	case spec.State == nodestate.SpecUnexamined:
		spec.Kind = "" // what it said before is not what it says
	case f.Err == nil: // what nobody can parse resolves nothing, whatever it said before
		for i, name := range f.Names {
			spec.Devices[name] = f.Nodes[i]
		}
	}
	return spec
}

// vfioDir is the part of /dev that a pod has mounted: what is elsewhere is not known to be the host's.
const vfioDir = "/dev/vfio/"

// renumbered are the devices of a spec that has a number of its own for a node of VFIO, which is another one on the host
// now: a container would get another device.
func (s *specs) renumbered(f *cdi.Foreign) map[string]bool {
	all := map[string]bool{}
	for name, nodes := range f.Numbered {
		for _, n := range nodes {
			at := path.Clean(n.OnHost)
			if !strings.HasPrefix(at, vfioDir) {
				continue
			}
			have, err := s.dev.Lstat(at)
			if err == nil && have.Type&fs.ModeDevice != 0 && (int64(have.Major) != n.Major || int64(have.Minor) != n.Minor) {
				all[name] = true
			}
		}
	}
	return all
}

// enter has a spec say what was read of it, if anything was.
func (o ownSpec) enter(spec *nodestate.Spec, kind string) {
	if o.devices == nil {
		return
	}
	spec.Kind, spec.Devices = kind, o.devices
	if spec.State == nodestate.SpecUnexamined {
		spec.State = nodestate.SpecValid
	}
}

// ownName is how a spec of this project is named.
type ownName struct{ owner, kind string }

// readOwn reads a spec of this project, if it has changed.
func (s *specs) readOwn(base string, info fs.FileInfo, name ownName) ownSpec {
	if before, ok := s.own[base]; ok && same(info, before.info) {
		return before
	}
	one := ownSpec{info: info}
	for _, d := range cdi.NewFile(s.dir, name.owner, name.kind).Read() {
		if one.devices == nil {
			one.devices = map[string][]string{}
		}
		nodes := make([]string, len(d.Nodes))
		for i, n := range d.Nodes {
			nodes[i] = n.OnHost()
		}
		one.devices[d.Name] = nodes
	}
	return one
}

func state(f *cdi.Foreign) nodestate.SpecState {
	switch {
	case f.Err != nil:
		return nodestate.SpecInvalid
	case f.Unread != nil || f.Unexamined > 0:
		return nodestate.SpecUnexamined
	case f.TooNew():
		return nodestate.SpecTooNew
	}
	return nodestate.SpecValid
}

// same says whether a file is the one that was there before: whoever writes one makes a new one.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
