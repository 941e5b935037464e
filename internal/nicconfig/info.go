package nicconfig

import (
	"maps"

	"kata-device-plugin/internal/pci"
)

// AdditionalInfo is what a pool's file adds to the information that containers get.
type AdditionalInfo struct {
	// All holds for every device, ByAddress for one, before All. The address of a
	// subfunction is that of its parent.
	All       map[string]string
	ByAddress map[pci.Address]map[string]string
}

// For returns what is said of one device, a map of its own.
func (i *AdditionalInfo) For(a pci.Address) map[string]string {
	merged := map[string]string{}
	if i != nil {
		maps.Copy(merged, i.All)
		maps.Copy(merged, i.ByAddress[a])
	}
	return merged
}

func (r *reader) additionalInfo(v value) *AdditionalInfo {
	info := &AdditionalInfo{}
	if !r.is(v, object, "write addresses with their values between { and }") {
		return nil
	}
	seen := map[pci.Address]place{}
	for _, e := range r.distinct(v) {
		v := value{e.value, v.field(e.key.text)}
		if e.key.text == "*" {
			info.All = r.texts(v)
			continue
		}
		a, what, remedy := address(e.key.text)
		if what != "" {
			r.fault(value{e.key, v.path}, what, remedy+`, or "*" for every device`)
			continue
		}
		if at, ok := seen[a]; ok {
			r.fault(value{e.key, v.path}, "is "+a.String()+", as is a key in "+at.String(), "remove one of the two")
			continue
		}
		seen[a] = e.key.at
		if texts := r.texts(v); texts != nil {
			if info.ByAddress == nil {
				info.ByAddress = map[pci.Address]map[string]string{}
			}
			info.ByAddress[a] = texts
		}
	}
	return info
}

// distinct returns the entries of an object whose keys are not fields but data. Case
// matters there.
func (r *reader) distinct(v value) []entry {
	var all []entry
	seen := map[string]place{}
	for _, e := range v.entries {
		if e.key.kind != text {
			continue
		}
		if at, ok := seen[e.key.text]; ok {
			r.fault(value{e.key, v.field(e.key.text)}, "stands here twice, first in "+at.String(), "remove one of the two")
			continue
		}
		seen[e.key.text] = e.key.at
		all = append(all, e)
	}
	return all
}

// texts reads an object of strings, nil when it is null or wrong.
func (r *reader) texts(v value) map[string]string {
	if v.kind == null || !r.is(v, object, `write keys and strings between { and }, such as {"token": "a"}`) {
		return nil
	}
	m := map[string]string{}
	for _, e := range r.distinct(v) {
		if s, ok := r.string(value{e.value, v.field(e.key.text)}); ok {
			m[e.key.text] = s
		}
	}
	return m
}
