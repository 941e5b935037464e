package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/nodeconfig"
)

// survey is the input with what is read of the captured nodes, once for all questions.
type survey struct {
	Input
	captured []*captured
	agents   []check.DeviceAgent
}

// captured is a node with its settings. What could not be read is nil, with the reason.
type captured struct {
	name, file string
	c          *capture.Capture
	runtime    *nodeconfig.Runtime
	runtimeErr error
	kubelet    *nodeconfig.Kubelet
	kubeletErr error
	katas      []*nodeconfig.Kata
	kataErr    error
	plugged    []plugged
	told       bool // kubelet has said which devices plugins offer
}

// plugged is a device of a device plugin that is a PCI function.
type plugged struct{ address, resource string }

func newSurvey(in Input) *survey {
	s := &survey{Input: in, agents: in.View.DeviceAgents()}
	for _, n := range in.View.Captured() {
		c := readNode(n)
		c.runs(in.View.Node(c.name))
		s.captured = append(s.captured, c)
	}
	return s
}

func readNode(in check.NodeInput) *captured {
	n := &captured{name: in.Name, file: in.File, c: in.Capture}
	tree := in.Capture.FS()
	n.kubelet, n.kubeletErr = nodeconfig.ReadKubelet(tree, cmp.Or(in.Capture.Meta.KubeletDir, "/var/lib/kubelet"))
	files, err := nodeconfig.KataFiles(tree)
	n.kataErr = err
	for _, file := range files {
		k, err := nodeconfig.ReadKata(tree, file)
		if err != nil {
			n.kataErr = errors.Join(n.kataErr, err)
			continue
		}
		n.katas = append(n.katas, k)
	}
	n.devices()
	return n
}

// otherRuntime is why settings are not known: they are those of a runtime that the node does not run.
type otherRuntime struct{ captured, version string }

func (e *otherRuntime) Error() string {
	return fmt.Sprintf("the capture has those of %s, and the node says that it runs %s", e.captured, e.version)
}

// severalRuntimes is why settings are not known: there are those of two, and nothing says which one runs.
type severalRuntimes struct{ one, other string }

func (e *severalRuntimes) Error() string {
	return fmt.Sprintf("the capture has those of %s and of %s, and the version in the node's status says which it runs", e.one, e.other)
}

// runs reads the settings of the runtime of which the node's object speaks, or else kubelet's configuration.
func (n *captured) runs(of *check.Node) {
	version, endpoint := "", ""
	if of != nil {
		version = runtimeVersion(of)
	}
	if n.kubelet != nil {
		endpoint = n.kubelet.Endpoint
	}
	tree, name := n.c.FS(), nodeconfig.RuntimeName(version, endpoint)
	n.runtime, n.runtimeErr = nodeconfig.ReadRuntime(tree, name)
	_, broken := errors.AsType[*nodeconfig.Broken](n.runtimeErr)
	switch {
	case n.runtime != nil && n.runtime.Beside != "":
		n.runtime, n.runtimeErr = nil, &severalRuntimes{n.runtime.Name, n.runtime.Beside}
	case n.runtime == nil && name != "" && !broken:
		if other, err := nodeconfig.ReadRuntime(tree, ""); err == nil && other.Name != name {
			n.runtimeErr = &otherRuntime{other.Name, cmp.Or(version, name)}
		}
	}
}

// devices are what kubelet has from plugins: what it offers, and what containers have.
func (n *captured) devices() {
	add := func(id, resource string) {
		if p := (plugged{check.Address(id), resource}); p.address != "" && !slices.Contains(n.plugged, p) {
			n.plugged = append(n.plugged, p)
		}
	}
	if all, err := n.c.Allocatable(); err == nil {
		n.told = true
		for _, d := range all.Devices {
			add(d.ID, d.Resource)
		}
	}
	if all, err := n.c.Pods(); err == nil {
		for _, p := range all.Pods {
			for _, c := range p.Containers {
				for _, d := range c.Devices {
					add(d.ID, d.Resource)
				}
			}
		}
	}
	slices.SortFunc(n.plugged, func(a, b plugged) int {
		return cmp.Or(strings.Compare(a.address, b.address), strings.Compare(a.resource, b.resource))
	})
}

// found begins a finding about the node. Its place is the capture: what it is about is said by the
// path on the host.
func (n *captured) found(k finding.Kind, format string, args ...any) check.Finding {
	f := found(k, check.Ref{Kind: "Node", Name: n.name}, manifest.Value{}, format, args...)
	f.Place = manifest.Place{File: n.file}
	return f
}

// unread says why settings are not known: nobody captured them, or they are broken.
func (n *captured) unread(v *verdict, what string, err error) {
	_, broken := errors.AsType[*nodeconfig.Broken](err)
	other, mixed := errors.AsType[*otherRuntime](err)
	switch {
	case mixed:
		runs, _, _ := strings.Cut(other.version, "://")
		v.open(fmt.Sprintf("the settings of %s on node %s: %s", runs, n.name, oneLine(err)))
	case broken:
		v.no(n.found(finding.SettingsUnreadable(), "node %s: %s", n.name, oneLine(err)))
	case errors.Is(err, fs.ErrNotExist):
		v.open(fmt.Sprintf("%s of node %s, which has none where they usually are", what, n.name))
	case errors.Is(err, capture.ErrNotCaptured):
		v.open(fmt.Sprintf("a new capture of node %s, with %s", n.name, what))
	default:
		v.open(fmt.Sprintf("%s of node %s, which could not be read: %s", what, n.name, oneLine(err)))
	}
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// eachCapture asks about every captured node. Of the others nothing is known of what only a capture has.
func (s *survey) eachCapture(v *verdict, what string, ask func(*captured)) {
	for _, n := range s.captured {
		ask(n)
	}
	if len(s.captured) == 0 {
		v.open("captured nodes (kubectl device snapshot), with " + what)
		return
	}
	s.uncaptured(v, what)
}

// eachKubelet asks about every captured node of which it is known what kubelet is told.
func (s *survey) eachKubelet(v *verdict, ask func(*captured)) {
	const what = "kubelet's configuration"
	s.eachCapture(v, what, func(n *captured) {
		if n.kubelet == nil {
			n.unread(v, what, n.kubeletErr)
			return
		}
		ask(n)
	})
}

// uncaptured is open for the nodes that nobody captured, where others are: what holds for those may not
// hold for these.
func (s *survey) uncaptured(v *verdict, what string) {
	var without []string
	for _, h := range s.hosts() {
		if h.captured == nil {
			without = append(without, h.name)
		}
	}
	if len(without) > 0 && len(s.captured) > 0 {
		v.open(captureOf(without...) + ", with " + what)
	}
}

// captureOf names what is missing. A capture without its node's name would not be known for the node's.
func captureOf(nodes ...string) string {
	if len(nodes) > 1 {
		return fmt.Sprintf("captures of the nodes %s (kubectl device snapshot --clear-names)", check.Few(nodes))
	}
	return fmt.Sprintf("a capture of node %s (kubectl device snapshot --clear-names)", nodes[0])
}

// linux are the nodes of the input that may have devices.
func (s *survey) linux() []*check.Node {
	return slices.DeleteFunc(slices.Clone(s.View.Nodes()), func(n *check.Node) bool {
		return n.Labels.Get("kubernetes.io/os").Text() == "windows"
	})
}

// machine is a node by its object, by a capture, or by both.
type machine struct {
	name     string
	object   *check.Node
	captured *captured
}

// hosts joins objects and captures by the name of the node. A capture without its name, as they are
// unless the names were left in it, is a node of its own.
func (s *survey) hosts() []machine {
	var all []machine
	for _, n := range s.linux() {
		h := machine{name: n.Name, object: n}
		if i := slices.IndexFunc(s.captured, func(c *captured) bool { return c.name == n.Name }); i >= 0 {
			h.captured = s.captured[i]
		}
		all = append(all, h)
	}
	for _, c := range s.captured {
		if !slices.ContainsFunc(all, func(h machine) bool { return h.captured == c }) {
			all = append(all, machine{name: c.name, captured: c})
		}
	}
	return all
}

func (h machine) runtimeVersion() string {
	if h.object == nil {
		return ""
	}
	return runtimeVersion(h.object)
}

func runtimeVersion(n *check.Node) string {
	return n.Object.Get("status", "nodeInfo", "containerRuntimeVersion").Text()
}

// kubeletVersion is what the node's object says, or where there is none, its capture.
func (h machine) kubeletVersion() string {
	if h.object == nil {
		return h.captured.c.Meta.Kubelet
	}
	return kubeletVersion(h.object).Text()
}

// settings are those of the container runtime, nil where they are not known.
func (h machine) settings() *nodeconfig.Runtime {
	if h.captured == nil {
		return nil
	}
	return h.captured.runtime
}

// found begins a finding about a version that the node has, at its object where there is one.
func (h machine) found(k finding.Kind, version, format string, args ...any) check.Finding {
	if h.object == nil {
		return h.captured.found(k, format, args...)
	}
	return found(k, nodeRef(h.object), h.object.Object.Get("status", "nodeInfo", version), format, args...)
}

// nodeRef is the identity of a node.
func nodeRef(n *check.Node) check.Ref { return check.Ref{Kind: "Node", Name: n.Name} }
