package nodeconfig

import "strings"

// CDI is what a version of a container runtime does with CDI devices.
type CDI uint8

// What versions do. CDIUnknown is of a runtime that is not known here.
const (
	CDIUnknown CDI = iota
	CDINever
	CDIWhenAsked // enable_cdi is off unless it is set
	CDIUnlessOff // enable_cdi is on unless it is false
	CDIAlways    // there is no setting
)

// CDIOf knows the versions of containerd and CRI-O as a node's status has them, such as
// containerd://2.1.4. Both take CDI devices from kubelet in a field of their interface: containerd since 1.7,
// where enable_cdi is off by default until 2.0, and without effect since 2.4 (its RELEASES.md, deprecated
// settings), CRI-O since 1.27.
func CDIOf(version string) CDI {
	name, number, _ := strings.Cut(version, "://")
	r, ok := ParseRelease(number)
	switch {
	case !ok:
		return CDIUnknown
	case name == "cri-o" && r.Compare(Release{1, 27}) >= 0, name == "containerd" && r.Compare(Release{2, 4}) >= 0:
		return CDIAlways
	case name == "containerd" && r.Major >= 2:
		return CDIUnlessOff
	case name == "containerd" && r == Release{1, 7}:
		return CDIWhenAsked
	case name == "containerd", name == "cri-o":
		return CDINever
	}
	return CDIUnknown
}
