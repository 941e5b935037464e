package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// priority: the classes that Kubernetes has itself are above all that a cluster may make. Of others it
// depends on their values.
func priority(s *survey, w Way, v *verdict) {
	s.eachAgent(w, v, func(a check.DeviceAgent) {
		class := a.Spec.Get("priorityClassName")
		switch class.Text() {
		case "":
			v.no(found(finding.Evictable(), a.Ref, a.Spec, "%s has no priorityClassName", a.Ref))
		case "system-node-critical", "system-cluster-critical":
			v.yes(fmt.Sprintf("%s has the priority class %s", a.Ref, class.Text()))
		default:
			s.ownPriority(a, class, v)
		}
	})
}

// ownPriority judges a class that somebody made. Pods without a class have the value of the class that is the
// default of all, and 0 where there is none.
func (s *survey) ownPriority(a check.DeviceAgent, class manifest.Value, v *verdict) {
	no := func(format string, args ...any) {
		is := fmt.Sprintf("%s has the priority class %s, ", a.Ref, class.Text())
		v.no(found(finding.Evictable(), a.Ref, class, "%s", is+fmt.Sprintf(format, args...)))
	}
	value := func(o *manifest.Object) int {
		n, _ := strconv.Atoi(o.Get("value").Text()) // no number is no priority
		return n
	}
	const kind = "PriorityClass"
	complete, all := s.View.Complete(kind), s.View.Objects(kind)
	i := slices.IndexFunc(all, func(o *manifest.Object) bool { return o.Name == class.Text() })
	switch {
	case i < 0 && complete:
		no("which the cluster does not have")
		return
	case i < 0:
		v.open("PriorityClasses, all of them")
		return
	}
	own := value(all[i])
	switch {
	case all[i].Get("globalDefault").Text() == "true":
		no("which pods without a class have as well")
		return
	case own <= 0:
		no("whose value is %d, and pods without a class have 0", own)
		return
	}
	for _, o := range all {
		if o != all[i] && !strings.HasPrefix(o.Name, "system-") && value(o) >= own {
			no("whose value is %d, and that of priorityclass %s is %d", own, o.Name, value(o))
			return
		}
	}
	if !complete {
		v.open("PriorityClasses, all of them")
		return
	}
	v.yes(fmt.Sprintf("%s has the priority class %s, whose value is above those of others", a.Ref, class.Text()))
}
