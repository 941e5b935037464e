package check

import (
	"fmt"
	"strings"
)

// The rules for names of extended resources. kubelet and the API server do not have the same.
const (
	native        = "kubernetes.io/"
	implicitClass = "deviceclass.resource.kubernetes.io/"
	maxPrefix     = 253 - len("requests.") // requests. is put in front for quota
	maxBase       = 63
)

// split parts a name into prefix and base. Without a slash all of it is the base.
func split(name string) (prefix, base string) {
	if prefix, base, ok := strings.Cut(name, "/"); ok {
		return prefix, base
	}
	return "", name
}

// isDevice says whether a name in requests or limits is one of a device, or is meant to be
// one: not of those that Kubernetes itself knows.
func isDevice(name string) bool {
	switch name {
	case "cpu", "memory", "storage", "ephemeral-storage", "pods", "":
		return false
	}
	return !strings.HasPrefix(name, "hugepages-") && !strings.HasPrefix(name, "attachable-volumes-")
}

// kubeletFault says why kubelet refuses to register a name, or nothing.
func kubeletFault(name string) string {
	prefix, base := split(name)
	switch {
	case !strings.Contains(name, "/"):
		return "has no slash"
	case strings.Contains(name, native):
		return "has " + native + " in it, which is reserved for Kubernetes; the API server accepts that, kubelet does not"
	case strings.HasPrefix(name, "requests."):
		return "begins with requests., which is reserved for quota"
	case len(prefix) > maxPrefix:
		return fmt.Sprintf("has a prefix of %d characters, and %d are allowed", len(prefix), maxPrefix)
	case !isDomain(prefix):
		return fmt.Sprintf("has the prefix %q, which is not a DNS name in lower case", prefix)
	case len(base) > maxBase:
		return fmt.Sprintf("has %d characters behind the slash, and %d are allowed", len(base), maxBase)
	case !isBase(base):
		return fmt.Sprintf("has %q behind the slash, which must be letters, digits and - _ . between them", base)
	}
	return ""
}

// apiFault says why the API server refuses a name in a pod, or nothing.
func apiFault(name string) string {
	if strings.Contains(name, native) {
		return ""
	}
	return kubeletFault(name)
}

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	digits = "0123456789"
	alnum  = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
)

func isDomain(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if !framed(label, lower+digits, "-") {
			return false
		}
	}
	return true
}

func isBase(s string) bool { return framed(s, alnum, "-_.") }

// framed: characters of two sets, the first and the last one of the first set.
func framed(s, ends, between string) bool {
	return s != "" && strings.Trim(s, ends+between) == "" && strings.Trim(s[:1]+s[len(s)-1:], ends) == ""
}

// fold makes equal what people confuse: case, and hyphens with underscores.
func fold(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }

// distance is the number of characters to insert, remove or exchange, no further than most.
func distance(a, b string, most int) int {
	if d := len(a) - len(b); d > most || -d > most {
		return most + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
