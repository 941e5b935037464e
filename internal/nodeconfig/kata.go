package nodeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// Kata is what a Kata shim is told about devices.
type Kata struct {
	// File is the file that a handler names.
	File string
	// Drops are files that were laid over it.
	Drops []string
	// ColdPlug and HotPlug are the ports that devices come to, no-port for none.
	ColdPlug, HotPlug string
	// Socket is kubelet's, of which the shim asks which devices a pod has; "" for none.
	Socket string
	// RootPorts is the number of PCIe root ports that the file asks for.
	RootPorts int64
}

// noPort is what the shims take a port for that nothing is said of.
const noPort = "no-port"

// KataDirs are where the configurations of Kata are.
func KataDirs() []string {
	return []string{"/etc/kata-containers", "/opt/kata/share/defaults/kata-containers",
		"/usr/share/defaults/kata-containers", "/usr/share/kata-containers/defaults"}
}

// DefaultKata are the files that a shim without a configuration of its own takes: the first that exists.
func DefaultKata() []string {
	return []string{"/etc/kata-containers/configuration.toml", "/usr/share/defaults/kata-containers/configuration.toml",
		"/opt/kata/share/defaults/kata-containers/configuration.toml"}
}

// KataVersionFile has the version of a Kata installation in its first line.
const KataVersionFile = "/opt/kata/VERSION"

// KataVersion is the version of the Kata that a node has.
func KataVersion(tree fs.FS) (string, error) {
	text, err := read(tree, KataVersionFile)
	if err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(first), nil
}

// ReadKata reads a configuration, with the files of config.d beside it.
func ReadKata(tree fs.FS, name string) (*Kata, error) {
	all, err := kataTable(tree, name)
	if err != nil {
		return nil, err
	}
	k := &Kata{File: name, ColdPlug: noPort, HotPlug: noPort}
	drops, err := filesIn(tree, path.Join(path.Dir(name), "config.d"), isTOML)
	if err != nil {
		return nil, err
	}
	for _, drop := range drops {
		more, err := kataTable(tree, drop)
		if err != nil {
			return nil, err
		}
		all, k.Drops = all.over(more), append(k.Drops, drop)
	}
	for _, hypervisor := range slices.Sorted(maps.Keys(all.table("hypervisor"))) {
		t := all.table("hypervisor", hypervisor)
		if s := t.text("cold_plug_vfio"); value(s) != "" {
			k.ColdPlug = *s
		}
		if s := t.text("hot_plug_vfio"); value(s) != "" {
			k.HotPlug = *s
		}
		if n := t.number("pcie_root_port"); n != nil {
			k.RootPorts = *n
		}
	}
	k.Socket = value(all.table("runtime").text("pod_resource_api_sock"))
	return k, nil
}

// kataTable reads a file of Kata. A value of another type than its shims want is as bad to them as a text
// that is no TOML.
func kataTable(tree fs.FS, name string) (table, error) {
	all, err := parseFile(tree, name)
	if err != nil {
		return nil, err
	}
	wrong := func(in, key, want string, value any) error {
		return &Broken{name, fmt.Errorf("%s.%s is %#v: write %s", in, key, value, want)}
	}
	for _, hypervisor := range slices.Sorted(maps.Keys(all.table("hypervisor"))) {
		t, in := all.table("hypervisor", hypervisor), "hypervisor."+hypervisor
		for _, key := range []string{"cold_plug_vfio", "hot_plug_vfio"} {
			if value, is := t[key]; is && t.text(key) == nil {
				return nil, wrong(in, key, `a port in quotes, such as "root-port"`, value)
			}
		}
		n := t.number("pcie_root_port")
		if value, is := t["pcie_root_port"]; is && (n == nil || *n < 0 || *n > math.MaxUint32) {
			return nil, wrong(in, "pcie_root_port", "the number of ports, such as 8", value)
		}
	}
	t := all.table("runtime")
	if value, is := t["pod_resource_api_sock"]; is && t.text("pod_resource_api_sock") == nil {
		return nil, wrong("runtime", "pod_resource_api_sock", "the path of kubelet's socket in quotes", value)
	}
	return all, nil
}

// KataFiles are the configurations that a node has, sorted. The error is that a directory could
// not be looked into; then there may be more.
func KataFiles(tree fs.FS) ([]string, error) {
	var all []string
	var errs []error
	for _, dir := range KataDirs() {
		found, err := kataFiles(tree, dir, 3) // runtimes/NAME/configuration.toml, runtime-rs
		all, errs = append(all, found...), append(errs, err)
	}
	slices.Sort(all)
	return all, errors.Join(errs...)
}

func kataFiles(tree fs.FS, dir string, depth int) ([]string, error) {
	entries, err := fs.ReadDir(tree, strings.TrimPrefix(dir, "/"))
	if errors.Is(err, fs.ErrNotExist) || depth == 0 {
		return nil, nil
	}
	var all []string
	var errs []error
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && e.Name() != "config.d":
			below, err := kataFiles(tree, name, depth-1)
			all, errs = append(all, below...), append(errs, err)
		case path.Ext(name) == ".toml" && strings.HasPrefix(e.Name(), "configuration"):
			all = append(all, name)
		}
	}
	return all, errors.Join(append(errs, err)...)
}
