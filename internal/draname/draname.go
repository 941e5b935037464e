// Package draname says what the DRA driver, its devices and their CDI names are called.
package draname

import (
	"strings"

	"kata-device-plugin/internal/pci"
)

// Driver is the name of the driver, and the domain of its attributes.
const Driver = "vfio.katacontainers.io"

// ClaimKind is the kind of the specs that the driver makes, one for each claim that it has prepared.
// A device in them is named by the claim's UID and the device: 1b9d...-gpu-0000-1b-00-0.
const ClaimKind = Driver + "/claim"

// Specs begins the names of the files of such specs: the UID of the claim is behind it.
const Specs = "kata.dra."

// SpecOwner is the owner of a claim's spec, in the name of its file.
func SpecOwner(uid string) string { return Specs + uid + "." }

// SpecClaim is the UID of the claim whose spec a file is, by the name of the file.
func SpecClaim(name string) (uid string, ok bool) {
	name, ok = strings.CutPrefix(name, Specs)
	uid, _, dot := strings.Cut(name, ".")
	return uid, ok && dot && uid != ""
}

// Device is the name of a device: its type and its address. It is a DNS label: the longest, of a switch in
// an eight-digit domain, has 25 characters.
func Device(kind string, a pci.Address) string { return kind + "-" + a.Label() }

// Parse takes the name of a claim's device apart: the claim's UID, which is "" in the name that the
// device itself has, and the address. They are strung together with dashes, which a UID has too.
func Parse(name string) (uid string, a pci.Address, ok bool) {
	const device = 5 // parts of a device's own name: the type, and four of the address
	parts := strings.Split(name, "-")
	at := len(parts) - device
	if at < 0 || parts[at] == "" {
		return "", a, false
	}
	a, err := pci.ParseLabel(strings.Join(parts[at+1:], "-"))
	return strings.Join(parts[:at], "-"), a, err == nil
}
