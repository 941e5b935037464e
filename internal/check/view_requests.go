package check

import "kata-device-plugin/internal/manifest"

// Request is what a claim asks for of one class.
type Request struct {
	// At is what is asked for, without the name.
	At manifest.Value
	// Name is that of the request; of one of its alternatives, it is followed by the alternative's: gpus/large.
	Name string
	// Of is the name of the request that it is an alternative of, "" where there are none.
	Of string
}

// Requests are those of a claim's spec, in all versions of the API: v1beta1 has no exactly.
func Requests(spec manifest.Value) []Request {
	var all []Request
	for r := range spec.Get("devices", "requests").Each() {
		name := r.Get("name").Text()
		exactly, list := r.Get("exactly"), r.Get("firstAvailable")
		switch {
		case list.Len() > 0:
			for sub := range list.Each() {
				all = append(all, Request{At: sub, Name: name + "/" + sub.Get("name").Text(), Of: name})
			}
		case exactly.Exists():
			all = append(all, Request{At: exactly, Name: name})
		default:
			all = append(all, Request{At: r, Name: name})
		}
	}
	return all
}
