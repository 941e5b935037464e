package cdispec

import (
	"fmt"
	"slices"
	"strings"

	"kata-device-plugin/internal/manifest"
)

// part is a list of edits, and why runtimes refuse an item of it: "" where they do not.
type part struct {
	key   string
	fault func(item manifest.Value) string
}

func parts() []part {
	return []part{
		{"env", variable}, {"deviceNodes", deviceNode}, {"hooks", hook}, {"mounts", mount}, {"netDevices", netDevice},
		{"additionalGids", func(v manifest.Value) string { return number(v, "a group") }},
	}
}

// editsFault is why runtimes refuse edits, with the value that is at fault.
func editsFault(edits manifest.Value) (at manifest.Value, why string) {
	for _, p := range parts() {
		list := edits.Get(p.key)
		if !list.Exists() {
			continue
		}
		if list.Kind() != manifest.List {
			return list, p.key + " is no list"
		}
		for item := range list.Each() {
			if why := p.fault(item); why != "" {
				return item, why
			}
		}
	}
	for _, key := range []string{"hostInterfaceName", "name"} {
		if twice, name := repeated(edits.Get("netDevices"), key); name != "" {
			return twice, fmt.Sprintf("two network devices have the %s %q", key, name)
		}
	}
	const longest = 4096
	id := edits.Get("intelRdt", "closID")
	if id.Text() == "." || id.Text() == ".." || strings.ContainsAny(id.Text(), "/\n") || len(id.Text()) >= longest {
		return id, fmt.Sprintf("%q is no closID", few(id.Text()))
	}
	return manifest.Value{}, ""
}

// few is the beginning of a text that may be long.
func few(text string) string {
	const most = 40
	if len(text) > most {
		return text[:most]
	}
	return text
}

// edit says whether edits change anything, which those of a device have to.
func edit(edits manifest.Value) bool {
	return edits.Get("intelRdt").Exists() || slices.ContainsFunc(parts(), func(p part) bool { return edits.Get(p.key).Len() > 0 })
}

func variable(v manifest.Value) string {
	if strings.IndexByte(v.Text(), '=') <= 0 {
		return fmt.Sprintf("%q is no variable NAME=VALUE", v.Text())
	}
	return ""
}

func deviceNode(v manifest.Value) string {
	permissions := v.Get("permissions").Text()
	switch {
	case v.Get("path").Text() == "":
		return "a device node has no path"
	case !slices.Contains([]string{"", "b", "c", "u", "p"}, v.Get("type").Text()):
		return fmt.Sprintf("%q is no type of a device node", v.Get("type").Text())
	case permissions != "none" && strings.Trim(permissions, "rwm") != "":
		return fmt.Sprintf("%q are no permissions", permissions)
	}
	for _, key := range []string{"major", "minor", "fileMode", "uid", "gid"} {
		if why := number(v.Get(key), key); why != "" && v.Get(key).Exists() {
			return why
		}
	}
	return ""
}

func hook(v manifest.Value) string {
	when := []string{"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"}
	switch {
	case !slices.Contains(when, v.Get("hookName").Text()):
		return fmt.Sprintf("%q is no name of a hook", v.Get("hookName").Text())
	case v.Get("path").Text() == "":
		return "a hook has no path"
	}
	for e := range v.Get("env").Each() {
		if why := variable(e); why != "" {
			return why
		}
	}
	return ""
}

func mount(v manifest.Value) string {
	for _, key := range []string{"hostPath", "containerPath"} {
		if v.Get(key).Text() == "" {
			return "a mount has no " + key
		}
	}
	return ""
}

func netDevice(v manifest.Value) string {
	for _, key := range []string{"hostInterfaceName", "name"} {
		if v.Get(key).Text() == "" {
			return "a network device has no " + key
		}
	}
	return ""
}

// repeated is an item of a list with a value that another has too.
func repeated(list manifest.Value, key string) (at manifest.Value, value string) {
	seen := map[string]bool{}
	for item := range list.Each() {
		name := item.Get(key).Text()
		if seen[name] {
			return item, name
		}
		seen[name] = true
	}
	return manifest.Value{}, ""
}

func number(v manifest.Value, what string) string {
	if v.Kind() != manifest.Number || strings.HasPrefix(v.Text(), "-") {
		return fmt.Sprintf("%s is no number: %q", what, v.Text())
	}
	return ""
}
