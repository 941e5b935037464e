package capture

import (
	"bytes"
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"kata-device-plugin/internal/draname"
)

// newRedactor finds the names in a capture, where it is known that they are names.
func newRedactor(c *Capture, salt []byte) *redactor {
	found := map[string]bool{c.Meta.Hostname: true}
	short, _, _ := strings.Cut(c.Meta.Hostname, ".")
	found[short] = true
	uids := map[string]bool{}
	for _, e := range c.entries {
		text := e.Text
		switch {
		case isClaim(e.Path):
			text = text[bytes.IndexByte(text, '\n')+1:]
			uid, _, _ := strings.Cut(path.Base(e.Path), ".")
			uids[uid] = true
		case !isRecord(e.Path):
			continue
		}
		_, _ = rewrite(text, func(keys []string, value string) string {
			switch key := keys[len(keys)-1]; {
			case isUID(key):
				uids[value] = true
			case isName(keys):
				found[value] = true
			}
			return value
		})
	}
	r := &redactor{
		salt: salt, fixed: fixedNames(c.Meta.KubeletDir), names: anyOf(found), masker: newMasker(),
		uuid: regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
		// Names of interfaces that are made of a MAC, as systemd does.
		macName: regexp.MustCompile(`\benx[0-9a-f]{12}\b`),
		// Names as resources and CDI kinds have: nvidia.com/gpu.
		qualified: regexp.MustCompile(`[a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)+/[A-Za-z0-9][A-Za-z0-9._-]*`),
	}
	for uid := range uids {
		if len(uid) >= 8 && r.uuid.FindString(uid) != uid {
			r.uids = append(r.uids, uid)
		}
	}
	slices.SortFunc(r.uids, longestFirst)
	return r
}

// anyOf finds the longest of some names. Names of one or two letters are replaced where they are
// known to be names, and stay in other texts: they tell nothing, and are in every word list.
func anyOf(names map[string]bool) *regexp.Regexp {
	const least = 3
	var all []string
	for name := range names {
		if len(name) >= least {
			all = append(all, regexp.QuoteMeta(name))
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, longestFirst)
	return regexp.MustCompile(`\b(?:` + strings.Join(all, "|") + `)\b`)
}

func longestFirst(a, b string) int {
	return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
}

// fixedNames are the files and directories that have the same name on every node.
func fixedNames(kubeletDir string) map[string]bool {
	fixed := map[string]bool{}
	for _, p := range []string{
		"/etc/cdi", "/var/run/cdi", "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "/plugins_registry",
		"/pod-resources/kubelet.sock", "/plugins/" + draname.Driver + "/claims", "DEPRECATION", "/proc/locks",
		"/etc/containerd/conf.d", "/etc/kata-containers/runtimes", "/opt/kata/share/defaults/kata-containers",
		"/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "/var/lib/rancher/rke2", kubeletDir,
	} {
		for elem := range strings.SplitSeq(p, "/") {
			fixed[elem] = true
		}
	}
	return fixed
}

// isClaim says whether a file is a record of the DRA driver's, or was.
func isClaim(name string) bool {
	return strings.HasSuffix(path.Dir(name), "/plugins/"+draname.Driver+"/claims")
}

// isRecord says whether a file is an answer of kubelet's, or its record.
func isRecord(name string) bool {
	return slices.Contains([]string{PodsPath, AllocatablePath, CheckpointPath}, name)
}

// isUID says whether the values of a key are UIDs.
func isUID(key string) bool { return key == "PodUID" || key == "uid" }

// isName says whether a value is a name that is replaced. Devices have names too, which stay.
func isName(keys []string) bool {
	key := keys[len(keys)-1]
	if key == "name" && len(keys) > 1 && keys[len(keys)-2] == "devices" {
		return false
	}
	return slices.Contains([]string{"Name", "Namespace", "ContainerName", "Pool", "name", "namespace", "pool"}, key)
}

// json replaces names in a JSON text: where names are, if it is one of which that is known, and
// in all texts otherwise. What is no JSON may say anything.
func (r *redactor) json(text []byte, known bool) []byte {
	to, err := rewrite(text, func(keys []string, value string) string {
		key := keys[len(keys)-1]
		switch always := r.always(value); {
		case !known || key == "Mounts" || key == "Annotations":
			return r.free(value)
		case isName(keys) || isUID(key) && always == value:
			return r.alias(value)
		default:
			return always
		}
	})
	if err != nil {
		return []byte(r.free(string(text)))
	}
	return to
}
