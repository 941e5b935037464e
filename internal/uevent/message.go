package uevent

import (
	"bytes"
	"slices"
)

// concerns says whether an announcement is of a subsystem of interest. A message is
// ACTION@DEVPATH and then KEY=VALUE, each ended by a NUL (kobject_uevent_env in
// lib/kobject_uevent.c).
func concerns(msg []byte) bool {
	header, rest, _ := bytes.Cut(msg, []byte{0})
	if action, path, ok := bytes.Cut(header, []byte("@")); !ok || len(action) == 0 || !bytes.HasPrefix(path, []byte("/")) {
		return false
	}
	// Interfaces that are no device's, such as those of pods, come and go all the time.
	if bytes.Contains(header, []byte("@/devices/virtual/net/")) {
		return false
	}
	for len(rest) > 0 {
		var field []byte
		field, rest, _ = bytes.Cut(rest, []byte{0})
		// The kernel writes it once, before what the driver adds.
		if name, ok := bytes.CutPrefix(field, []byte("SUBSYSTEM=")); ok {
			return slices.Contains(subsystems(), string(name))
		}
	}
	return false
}

// subsystems are those whose devices a look reads: functions, and what they appear as.
func subsystems() []string {
	return []string{
		"pci", "net", "infiniband", "infiniband_verbs", "infiniband_mad", "vdpa", "auxiliary",
		"vfio-dev", "vfio", "uio", "misc",
	}
}
