package cdispec

import "kata-device-plugin/internal/manifest"

// keys is what a map may have: keys with what is below them. Nil is anything.
type keys map[string]keys

func leaves(names ...string) keys {
	all := keys{}
	for _, name := range names {
		all[name] = nil
	}
	return all
}

// schema is what a CDI spec may have, up to version 1.1.0. Runtimes refuse other keys.
func schema() keys {
	edits := leaves("env", "additionalGids")
	edits["deviceNodes"] = leaves("path", "hostPath", "type", "major", "minor", "fileMode", "permissions", "uid", "gid")
	edits["netDevices"] = leaves("hostInterfaceName", "name")
	edits["hooks"] = leaves("hookName", "path", "args", "env", "timeout")
	edits["mounts"] = leaves("hostPath", "containerPath", "options", "type")
	edits["intelRdt"] = leaves("closID", "l3CacheSchema", "memBwSchema", "enableCMT", "enableMBM", "schemata",
		"enableMonitoring")
	device := leaves("name", "annotations")
	device["containerEdits"] = edits
	top := leaves("cdiVersion", "kind", "annotations")
	top["devices"], top["containerEdits"] = device, edits
	return top
}

// unknownKey is the first value whose key is not in a schema, or nothing.
func unknownKey(v manifest.Value, known keys) manifest.Value {
	if known == nil {
		return manifest.Value{}
	}
	for item := range v.Each() {
		if found := unknownKey(item, known); found.Key() != "" {
			return found
		}
	}
	for e := range v.Entries() {
		below, ok := known[e.Key()]
		if !ok {
			return e
		}
		if found := unknownKey(e, below); found.Key() != "" {
			return found
		}
	}
	return manifest.Value{}
}

// keyTwice is a value whose key stands twice in a map, or nothing.
func keyTwice(v manifest.Value) manifest.Value {
	for item := range v.Each() {
		if found := keyTwice(item); found.Key() != "" {
			return found
		}
	}
	seen := map[string]bool{}
	for e := range v.Entries() {
		if seen[e.Key()] {
			return e
		}
		seen[e.Key()] = true
		if found := keyTwice(e); found.Key() != "" {
			return found
		}
	}
	return manifest.Value{}
}
