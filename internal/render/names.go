package render

import (
	"regexp"
	"slices"
	"strings"
)

// mostRequestName leaves room for a number behind the name of a request, which is a DNS label.
const mostRequestName = 50

// The functions here say what is wrong with a text and what to do, or nothing.

func oneOf(known ...string) func(string) (what, remedy string) {
	return func(s string) (string, string) {
		if slices.Contains(known, s) {
			return "", ""
		}
		last := len(known) - 1
		if last == 0 {
			return "is not known here", "write " + known[0]
		}
		return "is not known here", "write " + strings.Join(known[:last], ", ") + " or " + known[last]
	}
}

func matches(pattern string, most int, what, remedy string) func(string) (string, string) {
	return func(s string) (string, string) {
		if len(s) <= most && regexp.MustCompile(`^(?:`+pattern+`)$`).MatchString(s) {
			return "", ""
		}
		return what, remedy
	}
}

const (
	label  = `[a-z0-9](?:[-a-z0-9]*[a-z0-9])?`
	domain = label + `(?:\.` + label + `)*`
)

// resourceName is the rule of the API server for extended resources, and none of its own names.
func resourceName(s string) (what, remedy string) {
	prefix, name, _ := strings.Cut(s, "/")
	if prefix == "kubernetes.io" || strings.HasSuffix(prefix, ".kubernetes.io") || strings.HasPrefix(prefix, "requests.") {
		return "is a name that Kubernetes keeps for itself", "write the name that pods have in limits, such as nvidia.com/gpu"
	}
	if len(name) > 63 {
		return "is too long", "a name has 63 characters at most behind its /"
	}
	return matches(domain+`/[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?`, 317,
		"is no name of an extended resource", "write the name that pods have in limits, such as nvidia.com/gpu")(s)
}

func subdomain(s string) (what, remedy string) {
	return matches(domain, 253, "is no name of an object", "use lower-case letters, digits, hyphens and dots")(s)
}

func requestName(s string) (what, remedy string) {
	return matches(label, mostRequestName, "is no name of a request", "use up to 50 lower-case letters, digits and hyphens")(s)
}

func attributeName(s string) (what, remedy string) {
	return matches(domain+`/[A-Za-z_][A-Za-z0-9_]{0,31}`, 96,
		"is no full name of an attribute", "write it with its domain, such as resource.kubernetes.io/pcieRoot")(s)
}

// expression: the API server takes 10 KiB of CEL. Whether it is CEL only a cluster can say.
func expression(s string) (what, remedy string) {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty", "write an expression in CEL, or remove it"
	case len(s) > 10<<10:
		return "is too long", "an expression has 10 KiB at most"
	}
	return "", ""
}

const labelName = `[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?`

func labelKey(s string) (what, remedy string) {
	return matches(`(?:`+domain+`/)?`+labelName, 317, "is no key of a label", "write it as kubectl get nodes --show-labels does")(s)
}

func labelValue(s string) (what, remedy string) {
	return matches(`(?:`+labelName+`)?`, 63, "is no value of a label",
		"use up to 63 letters, digits, hyphens, underscores and dots")(s)
}

func quotaName(s string) (what, remedy string) {
	return matches(`(?:`+domain+`/)?`+labelName, 253, "is no name of a resource", "write cpu, memory, or a name as in limits")(s)
}

func quantity(s string) (what, remedy string) {
	return matches(`[0-9]+(?:\.[0-9]+)?(?:m|k|[MGTPE]|[KMGTPE]i)?`, 30, "is no quantity", "write a number, such as 8 or 512Gi")(s)
}
