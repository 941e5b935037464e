package check

import (
	"slices"

	"kata-device-plugin/internal/manifest"
)

// Published lists the devices of the newest generation of each pool.
func (v *View) Published() []Published { return v.published }

// Tolerates says whether what has a list of tolerations may have a device with a taint.
func Tolerates(of manifest.Value, t Taint) bool { return tolerates(of, t) }

// Allotted lists the devices that claims have.
func (v *View) Allotted() []Allotted { return v.allotted() }

// Reserved are the pods that a claim is reserved for.
func Reserved(claim *manifest.Object) []string {
	var all []string
	for r := range claim.Get("status", "reservedFor").Each() {
		if r.Get("resource").Text() == "pods" {
			all = append(all, r.Get("name").Text())
		}
	}
	slices.Sort(all)
	return all
}
