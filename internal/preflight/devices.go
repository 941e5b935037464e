package preflight

import (
	"fmt"
	"slices"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// hardware is what the rules that declare devices say of it. Those of NICs are known only where the node's
// plugin is configured.
func hardware(s *survey, w Way, v *verdict) {
	captureChecks("the hardware", "HST001", "HST002", "HST021", "HST022", "HST026", "HST027", "HST029", "HST030", "HST031",
		"HST033", "HST034")(s, w, v)
	s.whenMade(v, anything, "HST008", "HST036", "HST037")
}

// serving: a node without a plugin of this project has no lock of one, and a record may be without any name
// that is too long.
func serving(s *survey, w Way, v *verdict) {
	captureChecks("kubelet's plugin directories", "PLG001", "PLG002", "PLG008", "PLG012")(s, w, v)
	s.whenMade(v, anything, "PLG003", "PLG006", "PLG007")
}

func allocatable(s *survey, w Way, v *verdict) {
	checks("NOD001", "NOD002")(s, w, v)
	s.whenMade(v, anything, "NOD003", "NOD004")
}

// configurations: of the plugins of this project only that of NICs reads one.
func configurations(s *survey, _ Way, v *verdict) {
	const reader = "nic-device-plugin"
	s.whenMade(v, func(f check.Finding) bool { return f.ID != finding.NameRefused().ID || f.Object.Kind == "ConfigMap" },
		"CFG001", "CFG003", "CFG004", "CFG006", "CFG008", "CFG011", "CFG019", "NAM010", "NAM011")
	reads := slices.ContainsFunc(s.agents, func(a check.DeviceAgent) bool { return a.Image == reader })
	unmade := slices.ContainsFunc(s.Checked.Skipped, func(c check.Skipped) bool { return c.ID == finding.ConfigUnusable().ID })
	switch {
	case reads && unmade:
		v.open("the ConfigMap from which " + reader + " has its configuration")
	case reads:
	default:
		s.eachAgent(DevicePlugin, v, func(a check.DeviceAgent) { v.yes(a.Ref.String() + " reads no configuration of devices") })
	}
}

// offeredOnce: who holds a device is seen only where kubelet or claims tell it.
func offeredOnce(s *survey, w Way, v *verdict) {
	checks("DRA006", "DRA016")(s, w, v)
	s.whenMade(v, anything, "MAP002", "MAP006")
}

// published: that a driver has published nothing is wrong once its pod runs, which DRA002 wants to see.
func published(s *survey, w Way, v *verdict) {
	checks("DRA009")(s, w, v)
	s.whenMade(v, anything, "DRA002", "DRA024", "DRA026")
	s.eachAgent(DRA, v, func(a check.DeviceAgent) {
		if a.Image == driverImage {
			s.publishes(a, v)
		}
	})
}

// publishes asks about each node on which the driver is to run.
func (s *survey) publishes(a check.DeviceAgent, v *verdict) {
	some := false
	for _, n := range s.linux() {
		if n.RefusesDaemon(a.Spec) == "" {
			some = true
			if has := s.publishedBy(n.Name); has > 0 {
				v.yes(fmt.Sprintf("%s has published %s on node %s", a.Ref, counted(has, "device"), n.Name))
			} else {
				v.open(fmt.Sprintf("ResourceSlices of node %s: %s is to run there, and the input has none with a device", n.Name, a.Ref))
			}
		}
	}
	if !some {
		v.open(fmt.Sprintf("a node that %s chooses", a.Ref))
	}
}

// publishedBy is how many devices the driver of this project has published on a node.
func (s *survey) publishedBy(node string) int {
	n := 0
	for _, d := range s.View.Published() {
		if d.Node == node && d.Driver == draname.Driver {
			n++
		}
	}
	return n
}

// classesTake: a claim is made by a class. What none of them takes nobody can have. A class may be for
// hardware that no node has.
func classesTake(s *survey, _ Way, v *verdict) {
	s.whenMade(v, anything, "DRA022", "DRA023")
	taken, of := map[check.DeviceName]bool{}, 0
	classes := s.View.Objects("DeviceClass")
	for _, c := range classes {
		m, err := s.View.Matching(c.Get("spec", "selectors"))
		if err != nil {
			v.open(fmt.Sprintf("what the selectors of %s take: %s", s.View.RefOf(c), oneLine(err)))
			return
		}
		for d := range m.Taken() {
			taken[d.DeviceName] = true
		}
	}
	var without []string
	for _, d := range s.View.Published() {
		if d.Driver != draname.Driver {
			continue
		}
		of++
		if !taken[d.DeviceName] {
			without = append(without, d.String())
		}
	}
	switch {
	case of == 0:
		v.open("ResourceSlices of " + draname.Driver + " with devices")
	case len(without) == 0:
		v.yes(fmt.Sprintf("device classes take each of the %s that the driver has published", counted(of, "device")))
	case !s.View.Complete("DeviceClass"):
		v.open("DeviceClasses, all of them: whether one takes " + check.Few(without))
	case len(classes) == 0:
		v.no(found(finding.ClassesTakeNothing(), check.Ref{}, manifest.Value{}, "the cluster has no DeviceClass for %s",
			check.Few(without)))
	default:
		v.no(s.takesNothing(classes, without))
	}
}

// takesNothing is said at the selectors of the first class.
func (s *survey) takesNothing(classes []*manifest.Object, without []string) check.Finding {
	f := found(finding.ClassesTakeNothing(), s.View.RefOf(classes[0]), classes[0].Get("spec", "selectors"),
		"none of the %s of the input takes %s", counted(len(classes), "DeviceClass"), check.Few(without))
	for _, c := range classes {
		f.Related = append(f.Related, check.Related{Place: c.Place(), Text: s.View.RefOf(c).String() + " takes none of them"})
	}
	return f
}
