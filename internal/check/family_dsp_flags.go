package check

import (
	"path"
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// flags are those of a program of ours: those that want a value, and those that do not.
type flags struct {
	image           string
	valued, boolean []string
}

// ownFlags are what the programs themselves list.
func ownFlags() []flags {
	return []flags{
		{image: "kata-device-plugin"},
		{
			image:  "nic-device-plugin",
			valued: []string{"config-file", "dev-dir", "device-info-dir", "resource-prefix"},
			// Those of the plugins that it replaces mean nothing to it, with a value or without.
			boolean: []string{"alsologtostderr", "kubelet-root-dir", "log-dir", "log-level", "log_backtrace_at", "log_dir", "log_link",
				"logbuflevel", "logtostderr", "stderrthreshold", "use-cdi", "v", "version", "vmodule"},
		},
		{
			image: "kata-dra-driver",
			valued: []string{"kubeconfig", "kubelet-dir", "node-name", "pod-uid", "poll-interval", "types", "web.config.file",
				"web.listen-address"},
			boolean: []string{"device-metadata", "version"},
		},
		{
			image: "device-exporter",
			valued: []string{"dev-dir", "kubelet-dir", "nic-config-file", "nic-resource-prefix", "node-name", "poll-interval", "settle",
				"stale-after", "textfile", "web.config.file", "web.listen-address"},
			boolean: []string{"pod-uid", "version"},
		},
	}
}

// FlagNames are the flags that the checks know a program of ours by.
func FlagNames(program string) []string {
	var all []string
	for _, f := range ownFlags() {
		if f.image == program {
			all = append(all, slices.Concat(f.valued, f.boolean)...)
		}
	}
	return all
}

// flagUnknown reads arguments as the programs do: the first one that they do not take ends them.
func flagUnknown(w *World) []Finding {
	var all []Finding
	for _, a := range w.deviceAgents() {
		i := slices.IndexFunc(ownFlags(), func(f flags) bool { return f.image == a.image })
		if !a.ours || i < 0 {
			continue
		}
		if at, why := ownFlags()[i].refuses(arguments(a.Container, a.image)); why != "" {
			all = append(all, found(a.ref(), at, "%s gives %s the argument %s, %s", a.ref(), a.image, at.Text(), why))
		}
	}
	return all
}

// arguments are those of a program, none where another one is started, such as a shell.
func arguments(container manifest.Value, program string) []manifest.Value {
	var all []manifest.Value
	for item := range container.Get("command").Each() {
		all = append(all, item)
	}
	if len(all) > 0 {
		if path.Base(all[0].Text()) != program {
			return nil
		}
		all = all[1:]
	}
	for item := range container.Get("args").Each() {
		all = append(all, item)
	}
	return all
}

// refuses finds the first argument that is not taken, and says why.
func (f flags) refuses(args []manifest.Value) (manifest.Value, string) {
	if len(args) > 0 && f.image == "device-exporter" && args[0].Text() == "introspect" {
		return manifest.Value{}, "" // another command, for people
	}
	for i := 0; i < len(args); i++ {
		text := args[i].Text()
		name, ok := strings.CutPrefix(text, "-")
		name, _, given := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		known := slices.Contains(f.valued, name) || slices.Contains(f.boolean, name) || name == "h" || name == "help"
		switch {
		case strings.Contains(text, "$("):
			return manifest.Value{}, "" // what it is decides a variable
		case len(f.valued) == 0:
			return args[i], "and it takes none"
		case !ok || name == "":
			return args[i], "which is no flag"
		case !known:
			if near := nearest(slices.Concat(f.valued, f.boolean), name); near != "" {
				return args[i], "which it does not have: did you mean --" + near + "?"
			}
			return args[i], "which it does not have"
		case slices.Contains(f.valued, name) && !given:
			i++ // the next one is its value
		}
	}
	return manifest.Value{}, ""
}
