package cdispec

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/manifest"
)

// OnHost is the path that a device node of a spec has on the host.
func OnHost(node manifest.Value) string {
	if at := node.Get("hostPath").Text(); at != "" {
		return at
	}
	return node.Get("path").Text()
}

// Stale says what is wrong with a device node of a spec, "" for nothing, or where nothing is known.
func Stale(node manifest.Value, dev host.DevFS) string {
	at := OnHost(node)
	if !strings.HasPrefix(path.Clean(at), "/dev/") {
		return "" // only that was looked at
	}
	have, err := dev.Lstat(path.Clean(at))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the host has no " + at
	case err != nil:
		return ""
	case have.Type&fs.ModeDevice == 0:
		return at + " of the host is no device node"
	}
	major, minor := node.Get("major").Text(), node.Get("minor").Text()
	is := strconv.Itoa(int(have.Major)) + ":" + strconv.Itoa(int(have.Minor))
	if major != "" && minor == "" {
		minor = "0"
	}
	if major != "" && major != "0" && major+":"+minor != is {
		return at + " is " + major + ":" + minor + " in the spec and " + is +
			" on the host: the container gets another device"
	}
	return ""
}

// Private says whether only the owner of a file and its group may read it: runtimes that do not run as
// root see no device of such a spec.
func Private(mode fs.FileMode) bool {
	const othersRead = 0o004
	return mode.Perm()&othersRead == 0
}
