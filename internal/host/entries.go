package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
)

// list names what is in a directory of the function, "" for its own. It is false where that
// could not be read. One that has gone, and a file in the place of one, hold nothing.
func (r *reader) list(name string) (names []string, ok bool) {
	entries, err := fs.ReadDir(r.sys, strings.TrimSuffix(r.dir+"/"+name, "/"))
	switch {
	case gone(err):
		r.torn = true
		return nil, true
	case errors.Is(err, syscall.ENOTDIR):
		return nil, true
	case err != nil:
		r.fail(cmp.Or(name, "."), err)
		return nil, false
	}
	names = make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, true
}

// member is an attribute that every device in a directory has, as it was read. Where it is
// not there the device is on its way in or out; where the entry is a file, it is no device.
func member[T any](r *reader, name string, v T, err error, old T) (now T, there bool) {
	switch {
	case gone(err):
		r.torn = true
		return old, false
	case errors.Is(err, syscall.ENOTDIR):
		return old, false
	case err != nil:
		r.fail(name, err)
		return old, true
	}
	return v, true
}

// parseText takes a line for what it says.
func parseText(s string) (string, error) {
	text := strings.TrimSuffix(s, "\n")
	if text == "" || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return "", fmt.Errorf("%q is not a word", s)
	}
	return text, nil
}

// parseNumber reads a number as the kernel prints it: decimal, without sign or zeros before.
func parseNumber(s string) (uint32, error) {
	text := strings.TrimSuffix(s, "\n")
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || strconv.FormatUint(n, 10) != text {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return uint32(n), nil
}

// parseInt is parseNumber for what C calls an int.
func parseInt(s string) (int, error) {
	n, err := parseNumber(s)
	if err != nil || n > 1<<31-1 {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return int(n), nil
}

// parseIndex reads an ifindex, which is never 0.
func parseIndex(s string) (int, error) {
	n, err := parseInt(s)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not an interface's index", s)
	}
	return n, nil
}

// parsePKey reads an entry of a partition table, 0xffff.
func parsePKey(s string) (*uint16, error) {
	text, ok := strings.CutPrefix(strings.TrimSuffix(s, "\n"), "0x")
	n, err := strconv.ParseUint(text, 16, 16)
	if !ok || err != nil || fmt.Sprintf("%04x", n) != text {
		return nil, fmt.Errorf("%q is not a partition key", s)
	}
	return new(uint16(n)), nil
}

// parseACPIIndex reads the firmware's number of a function.
func parseACPIIndex(s string) (*uint32, error) {
	n, err := parseNumber(s)
	if err != nil {
		return nil, err
	}
	return new(n), nil
}
