package nicconfig

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// reader goes through one file. Every reading function reports what is wrong with its
// value, and says so to its caller, which then draws no conclusions from the value.
type reader struct {
	file     string
	flag     string // --resource-prefix
	flagOK   bool
	problems problemList
	values   int
	ignored  []Ignored

	// names, files and variables are those of the resources so far. They are looked up, never
	// ranged over.
	names     map[string]claim
	files     map[string]claim
	variables map[string]claim
}

func (r *reader) add(p Problem) { r.problems.add(p) }

// value is a node with the path that leads to it.
type value struct {
	*node
	path string
}

func (v value) item(i int) value {
	return value{v.items[i], v.path + "[" + strconv.Itoa(i) + "]"}
}

// field is the path of a field of an object.
func (v value) field(key string) string {
	plain := key != "" && strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "" && len(key) <= 60
	switch {
	case !plain:
		return v.path + "[" + quoted(key) + "]"
	case v.path == "":
		return key
	}
	return v.path + "." + key
}

// fault reports a problem of a value.
func (r *reader) fault(v value, what, remedy string) {
	r.add(Problem{File: r.file, Line: v.at.line, Column: v.at.column, Path: v.path, Value: v.show(), What: what, Remedy: remedy})
}

// missing reports that an object lacks a field.
func (r *reader) missing(v value, key, what, remedy string) {
	r.add(Problem{File: r.file, Line: v.at.line, Column: v.at.column, Path: v.field(key), What: what, Remedy: remedy})
}

// is says whether a value has a type. Anything else is a problem.
func (r *reader) is(v value, want kind, remedy string) bool {
	if v.kind != want && v.kind != wrong {
		r.fault(v, "is not "+want.String(), remedy)
	}
	return v.kind == want
}

// rule is what is known about a field of an object.
type rule struct {
	key  string
	read func(value)
	// ignored says why a field has no effect, if it has none.
	ignored string
}

// object reads the fields of an object, in the order of the file. Keys are compared
// without case, as Go's JSON decoder does, and null is as good as absent: both have
// been used by whoever generates such files. A key that is not known is a problem;
// elsewhere may know what it is instead, and what to do.
//
// It says whether the value is an object, and whether all of its keys were understood:
// if not, what seems to be missing may be what was misspelt.
func (r *reader) object(v value, rules []rule, elsewhere func(key string) (what, remedy string)) (read, understood bool) {
	if !r.is(v, object, "write its fields between { and }") {
		return false, false
	}
	understood = true
	seen := map[string]place{}
	for _, e := range v.entries {
		if e.key.kind != text {
			understood = false // and reported
			continue
		}
		known, ok := match(rules, e.key.text)
		field := value{e.value, v.field(e.key.text)}
		if ok {
			field.path = v.field(known.key)
		}
		folded := strings.ToLower(cmp.Or(known.key, e.key.text))
		if at, doubled := seen[folded]; doubled {
			r.fault(value{e.key, field.path}, "stands here twice, first in "+at.String(), "remove one of the two; upper and lower case make no difference")
			continue
		}
		seen[folded] = e.key.at
		if !ok {
			understood = false
			what, remedy := elsewhere(e.key.text)
			r.fault(value{e.key, field.path}, cmp.Or(what, "is not a known key"), cmp.Or(remedy, "known here are "+strings.Join(keysOf(rules), ", ")))
			continue
		}
		if e.value.kind == null {
			continue
		}
		if known.ignored != "" {
			r.ignored = append(r.ignored, Ignored{Path: field.path, Why: known.ignored})
		}
		if known.read != nil {
			known.read(field)
		}
	}
	return true, understood
}

func match(rules []rule, key string) (rule, bool) {
	for _, known := range rules {
		if strings.EqualFold(known.key, key) {
			return known, true
		}
	}
	return rule{}, false
}

// has says whether a key is among the rules.
func has(rules []rule, key string) bool {
	_, ok := match(rules, key)
	return ok
}

// keysOf lists the keys that people may write, without those that are only tolerated.
func keysOf(rules []rule) []string {
	var keys []string
	for _, known := range rules {
		if known.ignored == "" {
			keys = append(keys, known.key)
		}
	}
	return keys
}

// nowhere is for objects whose unknown keys belong nowhere else.
func nowhere(string) (what, remedy string) { return "", "" }

// each reads the elements of a list, whatever they are.
func (r *reader) each(v value, remedy string, read func(value)) {
	if !r.is(v, list, remedy) {
		return
	}
	for i := range v.items {
		read(v.item(i))
	}
}

// string reads a string.
func (r *reader) string(v value) (string, bool) {
	remedy := "write a string"
	if v.kind == number || v.kind == boolean {
		remedy = "put it in quotes"
	}
	if !r.is(v, text, remedy) {
		return "", false
	}
	return v.text, true
}

// strings reads a list of strings, each with a function that says what is wrong with
// one, or nothing.
func (r *reader) strings(v value, read func(text string) (what, remedy string)) {
	r.each(v, "put it in brackets, even a single one", func(item value) {
		s, ok := r.string(item)
		if !ok {
			return
		}
		if what, remedy := read(s); what != "" {
			r.fault(item, what, remedy)
		}
	})
}

// boolean reads true or false into a place.
func (r *reader) boolean(to *bool) func(value) {
	return func(v value) {
		if r.is(v, boolean, "write true or false, without quotes") {
			*to = strings.EqualFold(v.text, "true")
		}
	}
}

// whole reads a whole number.
func (r *reader) whole(v value, least, most int) (int, bool) {
	if !r.is(v, number, "write a whole number, without quotes") {
		return 0, false
	}
	n, err := strconv.Atoi(v.text)
	if digits := strings.TrimPrefix(v.text, "-"); strings.Trim(digits, "0123456789") != "" || len(digits) > 1 && digits[0] == '0' {
		r.fault(v, "is not a whole number in decimal digits", fmt.Sprintf("write a number from %d to %d", least, most))
		return 0, false
	}
	if err != nil || n < least || n > most {
		r.fault(v, "is out of range", fmt.Sprintf("write a number from %d to %d", least, most))
		return 0, false
	}
	return n, true
}

// choice reads one of a few words into a place.
func choice[T any](r *reader, to *T, words map[string]T, remedy string) func(value) {
	return func(v value) {
		s, ok := r.string(v)
		if !ok || s == "" { // generators leave the empty string for what is not set
			return
		}
		chosen, ok := words[s]
		if !ok {
			r.fault(v, "is not one of the words that are known here", remedy)
			return
		}
		*to = chosen
	}
}

// unique adds to a list what is not in it yet.
func unique[T comparable](to *[]T) func(T) {
	seen := map[T]bool{}
	return func(x T) {
		if !seen[x] {
			seen[x] = true
			*to = append(*to, x)
		}
	}
}
