package nodeconfig

import (
	"cmp"
	"strconv"
	"strings"
)

// Release is a version of a program without what is behind its second number.
type Release struct{ Major, Minor int }

// ParseRelease reads 1.7.27, v2.1 and 4.1.0-rc0. It is false for what is no version.
func ParseRelease(text string) (Release, bool) {
	numbers := strings.SplitN(strings.TrimPrefix(text, "v"), ".", 3)
	if len(numbers) < 2 {
		return Release{}, false
	}
	major, err1 := strconv.Atoi(numbers[0])
	minor, err2 := strconv.Atoi(numbers[1])
	return Release{major, minor}, err1 == nil && err2 == nil
}

// Compare is below 0 for a release that is older than the other.
func (r Release) Compare(other Release) int {
	return cmp.Or(cmp.Compare(r.Major, other.Major), cmp.Compare(r.Minor, other.Minor))
}
