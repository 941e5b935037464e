package preflight

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/nodeconfig"
)

// kataSettings is what the input is asked for.
const kataSettings = "Kata's configuration"

// used are the classes by which pods with devices ask for their VM.
func (s *survey) used() []string {
	all := map[string]bool{}
	for _, p := range s.View.Workloads() {
		class := p.Spec.Get("runtimeClassName").Text()
		if class != "" && (len(p.Wants()) > 0 || p.Spec.Get("resourceClaims").Len() > 0) {
			all[class] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// reading is what is known of which configurations the shims of a node read.
type reading uint8

const (
	// everyRead: pods with devices have each of them. No other stands for one that the capture lacks.
	everyRead reading = iota
	// someRead: pods may ask for any of them. An installation has one for each hypervisor, and most are for pods
	// without devices.
	someRead
	// perhapsRead: nobody knows which one is read.
	perhapsRead
)

// configs are the configurations that matter on a node.
type configs struct {
	all []*nodeconfig.Kata
	how reading
	// lacks has what cannot be read, or is not known, of what may be read.
	lacks verdict
}

func (s *survey) configs(n *captured) *configs {
	c := &configs{}
	names, used := s.usedOn(n, &c.lacks)
	if !used {
		names, c.how = s.handlersOn(n), someRead
	}
	if !used && (n.runtime == nil || len(names) == 0) {
		c.all, c.how = n.katas, perhapsRead
		if n.kataErr != nil {
			n.unread(&c.lacks, kataSettings, n.kataErr)
		} else if len(n.katas) == 0 {
			c.lacks.open(n.nowhere())
		}
		return c
	}
	for _, name := range names {
		if n.runtime == nil {
			c.lacks.open(fmt.Sprintf("%s of node %s: which file %s reads", runtimeSettings, n.name, name))
			continue
		}
		h, known := n.runtime.Handler(name)
		if !known {
			c.lacks.open(fmt.Sprintf("what of %s of node %s has the handler %s", runtimeSettings, n.name, name))
			continue
		}
		k := n.config(h, &c.lacks)
		if k != nil && !slices.ContainsFunc(c.all, func(other *nodeconfig.Kata) bool { return other.File == k.File }) {
			c.all = append(c.all, k)
		}
	}
	return c
}

// usedOn are the handlers of those of the used classes that may start Kata VMs on a node. A class that the
// input does not have may be one of them.
func (s *survey) usedOn(n *captured, lacks *verdict) (handlers []string, some bool) {
	classes := s.classesOn(n)
	for _, name := range s.used() {
		ref := check.Ref{Kind: "RuntimeClass", Name: name}
		c := s.View.Object(ref)
		switch {
		case c == nil && s.View.Complete("RuntimeClass"): // such a pod is refused
		case c == nil:
			some = true
			lacks.open(fmt.Sprintf("%s, which pods with devices name", ref))
		case slices.Contains(classes, c):
			some = true
			handlers = append(handlers, c.Get("handler").Text())
		}
	}
	return handlers, some
}

// handlersOn are those that pods on a node may have: those of its classes, or where there is no class, those of
// Kata that its runtime knows.
func (s *survey) handlersOn(n *captured) []string {
	var all []string
	for _, c := range s.classesOn(n) {
		all = append(all, c.Get("handler").Text())
	}
	if len(all) > 0 || n.runtime == nil {
		return all
	}
	for _, h := range n.runtime.Handlers {
		if h.Kata() {
			all = append(all, h.Name)
		}
	}
	return all
}

// classesOn are the classes of Kata whose pods may be on a node.
func (s *survey) classesOn(n *captured) []*manifest.Object {
	of := s.View.Node(n.name)
	return slices.DeleteFunc(s.kataClasses(), func(c *manifest.Object) bool { return of != nil && !chooses(c, of) })
}

// config is what a handler's shim reads: the file that it is told, or else the first of the usual ones
// that exists. It is nil where that is not known.
func (n *captured) config(h nodeconfig.Handler, v *verdict) *nodeconfig.Kata {
	names := nodeconfig.DefaultKata()
	if h.Config != "" {
		names = []string{path.Clean(h.Config)}
	}
	for _, name := range names {
		k, err := nodeconfig.ReadKata(n.c.FS(), name)
		switch {
		case err == nil:
			return k
		case errors.Is(err, capture.ErrNotCaptured):
			v.open(fmt.Sprintf("%s of node %s, which the handler %s reads and the capture does not have", name, n.name, h.Name))
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			n.unread(v, name, err)
			return nil
		}
	}
	if h.Config == "" {
		v.open(n.nowhere())
		return nil
	}
	v.no(n.found(finding.SettingsUnreadable(), "node %s has no %s, which the handler %s is told to read",
		n.name, names[0], h.Name))
	return nil
}

func (n *captured) nowhere() string {
	return fmt.Sprintf("Kata's configuration of node %s, which has none where it usually is", n.name)
}
