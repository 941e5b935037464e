package check

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/nodeconfig"
)

// NodeInput is a captured node.
type NodeInput struct {
	// Name is the node's name. The host name of the capture is taken where it is "".
	Name string
	// File is where the capture comes from: the place of what is found in it.
	File    string
	Capture *capture.Capture
	// Bytes and SHA256 are of the text of the capture, 0 and "" where it is of no file.
	Bytes  int64
	SHA256 string
}

// Host is what the node's host is called, or the word in the place of it.
func (n NodeInput) Host() string {
	if n.Capture == nil {
		return n.Name
	}
	return n.Capture.Meta.Hostname
}

// captured is a node with what kubelet said and wrote there. What nobody asked for is nil.
type captured struct {
	name, file  string
	c           *capture.Capture
	pods        *capture.Pods
	podsErr     error
	allocatable *capture.Allocatable
	record      *capture.Checkpoint
	recordErr   error
	told        bool // kubelet has said which devices there are
	// stranger: there are Nodes in the input, and it is not known to be one of them. like are those that it may be.
	stranger bool
	like     []*Node
	// newer is a capture of the same node that counts in the place of this one.
	newer *captured
	// nics are the rules of the node's nic-device-plugin, nil where they are not known.
	nics declare.Rules
	// What is made of the capture when somebody asks for it.
	made         *hardware
	files        *specFiles
	settings     *nodeconfig.Runtime
	settingsRead bool
}

func findCaptured(inputs []NodeInput) []*captured {
	var all []*captured
	for _, in := range inputs {
		if in.Capture == nil {
			continue
		}
		n := &captured{name: cmp.Or(in.Name, in.Capture.Meta.Hostname), file: in.File, c: in.Capture}
		n.pods, n.podsErr = in.Capture.Pods()
		n.allocatable, _ = in.Capture.Allocatable() // an error is that there is no answer, as nil is
		n.record, n.recordErr = in.Capture.Checkpoint()
		n.told = n.pods != nil || n.allocatable != nil
		all = append(all, n)
	}
	return all
}

func (n *captured) ref() Ref { return Ref{"Node", "", n.name} }

// found begins a finding about the node. A capture has no lines that people look at: what it is
// about is said by the path on the host.
func (n *captured) found(format string, args ...any) Finding {
	return placed(n.ref(), manifest.Place{File: n.file}, "", format, args...)
}

// producers are the names that kubelet has had from plugins. That of another cluster advertises nothing.
func (n *captured) producers() []*Producer {
	if n.stranger {
		return nil
	}
	known := map[string]bool{}
	if n.record != nil {
		for name := range n.record.Data.RegisteredDevices {
			known[name] = true
		}
	}
	for name := range n.offered() {
		known[name] = true
	}
	var all []*Producer
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, &Producer{Name: name, Why: "registered with kubelet of node " + n.name, Object: n.ref(),
			At: manifest.Place{File: n.file}, origin: fromKubelet})
	}
	return all
}

// lateKubelet says whether kubelet does not name pods that have ended: before 1.34 it does, and
// other pods may have their devices by then.
func (n *captured) lateKubelet() bool {
	minor, ok := minorOf(n.c.Meta.Kubelet)
	return !ok || minor >= 34
}

// dir lists a directory, and says whether it is known what is in it. One that does not exist is.
func (n *captured) dir(name string) (entries []*capture.Entry, known bool) {
	entries, err := n.c.Files(name)
	return entries, err == nil || errors.Is(err, fs.ErrNotExist)
}

// lists says whether a directory could be listed.
func (n *captured) lists(name string) bool {
	_, err := n.c.Files(name)
	return err == nil
}

// Where kubelet has its directories. That of device plugins never moves.
const pluginsDir = "/var/lib/kubelet/device-plugins"

func (n *captured) kubeletDir() string { return cmp.Or(n.c.Meta.KubeletDir, "/var/lib/kubelet") }

func (n *captured) registryDir() string { return path.Join(n.kubeletDir(), "plugins_registry") }

// looseMode says what a file's mode and owner let others than root do, "" for nothing.
func looseMode(p *capture.Perm) string {
	const groupWrite, othersWrite = 0o020, 0o002
	switch {
	case p == nil:
		return ""
	case p.UID != 0:
		return fmt.Sprintf("it belongs to user %d", p.UID)
	case p.Mode&othersWrite != 0:
		return fmt.Sprintf("everybody may write to it, its mode is %04o", p.Mode)
	case p.Mode&groupWrite != 0 && p.GID != 0:
		return fmt.Sprintf("group %d may write to it, its mode is %04o", p.GID, p.Mode)
	}
	return ""
}

// onNodes goes through the captured nodes that a condition holds for.
func (w *World) onNodes(has func(*captured) bool, do func(*captured) []Finding) []Finding {
	var all []Finding
	for _, n := range w.captured {
		if has(n) {
			all = append(all, do(n)...)
		}
	}
	return all
}

// pciAddress is an ID as a PCI address in lower case, "" for other IDs: numbers of shares, UUIDs
// and whatever else a plugin calls its devices.
func pciAddress(id string) string {
	id = strings.ToLower(id)
	if len(id) != len("0000:00:00.0") || !strings.ContainsRune("01234567", rune(id[11])) || strings.Count(id, ":") != 2 {
		return ""
	}
	for i, c := range id {
		want := "0123456789abcdef"
		switch i {
		case 4, 7:
			want = ":"
		case 10:
			want = "."
		}
		if !strings.ContainsRune(want, c) {
			return ""
		}
	}
	return id
}
