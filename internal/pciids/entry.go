package pciids

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// subsystem takes two numbers and a name apart.
func subsystem(s string) (key uint32, name string, ok bool) {
	vendor, rest, ok := number(s, 4)
	if !ok || !strings.HasPrefix(rest, " ") {
		return 0, "", false
	}
	device, name, ok := entry(rest[1:], 4)
	return pair(vendor, device), name, ok
}

// entry takes a number of so many digits and a name apart.
func entry(s string, digits int) (key uint32, name string, ok bool) {
	key, rest, ok := number(s, digits)
	if !ok {
		return 0, "", false
	}
	name, ok = strings.CutPrefix(rest, "  ")
	return key, name, ok && printable(name)
}

// number reads lower-case hexadecimal digits, as the list and the kernel spell them.
func number(s string, digits int) (v uint32, rest string, ok bool) {
	if len(s) < digits {
		return 0, "", false
	}
	for _, c := range []byte(s[:digits]) {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			v = v<<4 | uint32(c-'a'+10)
		default:
			return 0, "", false
		}
	}
	return v, s[digits:], true
}

// printable says whether a name can be shown on a terminal as it is: a list may come from
// anywhere.
func printable(name string) bool {
	if name == "" || strings.TrimSpace(name) != name {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		// What is not UTF-8 comes as RuneError. The list has spaces that do not break.
		return !unicode.IsPrint(r) && r != '\u00a0' || r == utf8.RuneError
	})
}
