package check

import (
	"errors"
	"slices"
	"strings"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/cdispec"
)

// enforceFile says whether SELinux refuses, or only writes down, what its policy does not allow.
const enforceFile = "/sys/fs/selinux/enforce"

// foreignTypes are the types of files that have no place, or one where nobody looks for plugins: a
// file keeps the type of the directory in which it was made when it is moved.
func foreignTypes() []string {
	return []string{"unlabeled_t", "default_t", "file_t", "tmp_t", "user_tmp_t", "user_home_t", "user_home_dir_t", "admin_home_t",
		"home_root_t", "nfs_t"}
}

// enforces says whether SELinux is on, and whether it refuses.
func (n *captured) enforces() (refuses, on bool) {
	e, ok := n.c.Entry(enforceFile)
	if !ok || e.Kind != capture.File || e.Failure != nil {
		return false, false
	}
	return strings.TrimSpace(string(e.Text)) == "1", true
}

func (n *captured) hasLabels() bool {
	_, on := n.enforces()
	return on && slices.ContainsFunc(n.labelled(), func(dir string) bool {
		_, err := n.c.Files(dir)
		return !errors.Is(err, capture.ErrNotCaptured)
	})
}

// labelled are the directories whose files others than their owners have to reach.
func (n *captured) labelled() []string { return append(n.socketDirs(), cdispec.Dirs()...) }

// labelWrong says nothing of types that are made for programs: which of them may reach which is
// for a policy to say that is not in the input.
func labelWrong(w *World) []Finding {
	return w.onNodes((*captured).hasLabels, func(n *captured) []Finding {
		var all []Finding
		refuses, _ := n.enforces()
		for _, dir := range n.labelled() {
			entries, _ := n.dir(dir)
			if e, ok := n.c.Entry(dir); ok {
				entries = append([]*capture.Entry{e}, entries...)
			}
			for _, e := range entries {
				kind := labelType(e.Label)
				if !slices.Contains(foreignTypes(), kind) {
					continue
				}
				f := n.found("%s of node %s has the SELinux type %s", e.Path, n.name, kind).because("its label is %s", e.Label)
				if !refuses {
					f = f.because("SELinux is permissive: it writes down what it would refuse")
				}
				all = append(all, f)
			}
		}
		return all
	})
}

// labelType is the type in a label, user:role:type:level.
func labelType(label string) string {
	const parts, at = 3, 2
	fields := strings.Split(label, ":")
	if len(fields) < parts {
		return ""
	}
	return fields[at]
}
