package nicconfig

import (
	"fmt"
	"strings"
)

// Resource is the name under which a pool is offered.
type Resource struct {
	Prefix, Name string
	Origin       Origin
}

// Origin says who named a resource's prefix.
type Origin uint8

// The origins.
const (
	FromPool   Origin = iota // the pool's resourcePrefix
	FromFlag                 // --resource-prefix
	Historical               // nobody: what the old plugin took
)

// String is the full name, which pods ask for.
func (r Resource) String() string { return r.Prefix + "/" + r.Name }

// Variable is the environment variable that tells a container its devices. Hyphens
// stay, although no shell can name such a variable: consumers, KubeVirt among them,
// build the name by the same rule.
func (r Resource) Variable() string {
	return "PCIDEVICE_" + strings.ToUpper(strings.NewReplacer(".", "_", "/", "_").Replace(r.String()))
}

// InfoVariable is the environment variable with what is known about the devices.
func (r Resource) InfoVariable() string { return r.Variable() + "_INFO" }

// The prefixes of resources that name none, by the plugin that read the list before.
const (
	sriovPrefix = "intel.com"
	rdmaPrefix  = "rdma"
)

// claim is who took a name or an environment variable, and where.
type claim struct {
	resource, file string
	at             place
}

// where says where something was claimed: in which line, and in which file if it is another.
func (r *reader) where(c claim) string {
	if c.file != r.file {
		return c.file + ", " + c.at.String()
	}
	return c.at.String()
}

// resource reads the two fields that name a pool's resource. Nothing is said of a
// resource half of which is wrong.
func (r *reader) resource(pool value, understood bool, prefix, name value, historical string) Resource {
	res := Resource{Prefix: historical, Origin: Historical}
	ok := true
	if r.flag != "" {
		res.Prefix, res.Origin, ok = r.flag, FromFlag, r.flagOK
	}
	if prefix.node != nil {
		if s, isText := r.string(prefix); !isText {
			ok = false
		} else if s != "" { // the old plugins took the empty prefix for none
			res.Prefix, res.Origin = s, FromPool
			what, remedy := prefixFault(s)
			if ok = what == ""; !ok {
				r.fault(prefix, what, remedy)
			}
		}
	}
	if name.node == nil {
		if understood {
			r.missing(pool, "resourceName", "is missing", "name the resource that pods ask for")
		}
		return res
	}
	s, isText := r.string(name)
	if !isText {
		return res
	}
	if what, remedy := nameFault(s); what != "" {
		r.fault(name, what, remedy)
		return res
	}
	if res.Name = s; ok {
		r.claim(res, name)
	}
	return res
}

// claim finds resources that cannot be told apart, by kubelet or in a container.
func (r *reader) claim(res Resource, name value) {
	mine := claim{res.String(), r.file, name.at}
	if other, ok := r.names[res.String()]; ok {
		r.fault(name, fmt.Sprintf("makes %s, which the pool in %s declares", res, r.where(other)), "rename one of the two, or make them one pool")
		return
	}
	// Files on the node have a hyphen for the slash: CDI specs, locks, device-info.
	file := strings.ReplaceAll(res.String(), "/", "-")
	if other, ok := r.files[file]; ok {
		r.fault(name, fmt.Sprintf("makes %s, whose files on the node have the names of those of %s in %s", res, other.resource, r.where(other)),
			"rename one of the two: a slash is a hyphen in names of files")
		return
	}
	if len(file) > maxFile {
		r.fault(name, fmt.Sprintf("makes a resource whose name has %d characters", len(file)), fmt.Sprintf("choose one of %d at most, prefix and slash included: files on the node are named after it", maxFile))
		return
	}
	r.names[res.String()], r.files[file] = mine, mine
	variables := []string{res.Variable(), res.InfoVariable()}
	for _, v := range variables {
		if other, ok := r.variables[v]; ok {
			r.fault(name, fmt.Sprintf("makes %s, whose environment variable %s is also that of %s in %s", res, v, other.resource, r.where(other)),
				"rename one of the two: a container with both would see the devices of one")
			return
		}
	}
	for _, v := range variables {
		r.variables[v] = mine
	}
}

// What kubelet accepts as the name of an extended resource is in pkg/apis/core/v1/helper
// of Kubernetes, IsExtendedResourceName. It puts "requests." in front, and the prefix
// with it must not be longer than a DNS name.
const (
	maxPrefix = 253 - len("requests.")
	maxName   = 63
	// maxFile leaves room for what else is in the names of files, of which the longest are
	// those of device-info with the ID of a device (255 bytes, NAME_MAX of limits.h).
	maxFile = 200
	lower   = "abcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
	alnum   = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
)

// prefixFault says what is wrong with a prefix, or nothing.
func prefixFault(s string) (what, remedy string) {
	switch {
	case len(s) > maxPrefix:
		return fmt.Sprintf("has %d characters", len(s)), fmt.Sprintf("kubelet accepts a prefix of %d at most", maxPrefix)
	case strings.HasPrefix(s, "requests."):
		return "begins with requests., which is reserved for quota", "choose a domain of your own"
	case strings.HasSuffix(s, "kubernetes.io"):
		return "ends in kubernetes.io, which is reserved for Kubernetes", "choose a domain of your own"
	}
	for label := range strings.SplitSeq(s, ".") {
		if !framed(label, lower+digits, "-") {
			return "is not a DNS name in lower case", "use labels of lower-case letters, digits and hyphens with dots between them, such as example.com"
		}
	}
	return "", ""
}

// nameFault says what is wrong with the part of a name behind the prefix, or nothing.
func nameFault(s string) (what, remedy string) {
	switch {
	case s == "":
		return "is empty", "name the resource that pods ask for"
	case len(s) > maxName:
		return fmt.Sprintf("has %d characters", len(s)), fmt.Sprintf("kubelet accepts a name of %d at most", maxName)
	case strings.Contains(s, "/"):
		return "has a slash", "put what stands before it into resourcePrefix"
	case !framed(s, alnum, "-_."):
		return "is not a name that kubelet accepts", "use letters, digits and - _ . between them"
	}
	return "", ""
}

// framed says whether a text has characters of two sets, and begins and ends with one
// of the first.
func framed(s, ends, between string) bool {
	return s != "" && strings.Trim(s, ends+between) == "" && strings.Trim(s[:1]+s[len(s)-1:], ends) == ""
}
