package claim

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"kata-device-plugin/internal/wholefile"
)

// Damaged is a file that cannot be trusted. Its claim may have a pod that runs, so its
// hardware stays held.
type Damaged struct {
	UID  string // as the file is named; "" when that is not a claim's name
	Path string
	// Newer is a whole file of a later version. It is not moved and not written over: the
	// later version will come back for it.
	Newer bool
	// Unread is a file that the system could not read. It may be whole, so it is not moved.
	Unread bool
	// Quarantined files were put aside. They stay until they are discarded.
	Quarantined bool
	Err         error // what is wrong
	// Group is every PCI address that can still be read in it, sorted. It may be empty, and
	// the claim hold something all the same. Devices with admin access are not left out: what
	// says so cannot be trusted either.
	Group []string
}

// DamagedError is the error of a call that needs a file that cannot be trusted.
type DamagedError struct{ Damaged }

func (e *DamagedError) Error() string {
	return fmt.Sprintf("record of claim %s in %s cannot be trusted: %v", e.UID, e.Path, e.Err)
}

// Unwrap is what is wrong.
func (e *DamagedError) Unwrap() error { return e.Err }

// look reads a file that is named for a claim. Both results are nil when there is none.
func look(path, uid string) (*document, *Damaged) {
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	damaged := &Damaged{UID: uid, Path: path}
	if err != nil && !errors.Is(err, errKind) && !errors.Is(err, errSize) {
		damaged.Unread = true
	}
	var doc *document
	if err == nil {
		err = checkUID(uid)
	}
	if err == nil {
		doc, err = decode(uid, data)
	}
	if err == nil {
		return doc, nil
	}
	damaged.Newer = errors.Is(err, errNewer)
	damaged.Err, damaged.Group = wholefile.Cause(err), addresses(data)
	return nil, damaged
}

// addresses finds PCI addresses in what need not be JSON any more.
func addresses(data []byte) []string {
	var all []string
	for word := range bytes.FieldsFuncSeq(data, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef:.", r) }) {
		if isAddress(word) {
			all = append(all, string(word))
		}
	}
	return unique(all)
}

func unique(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// isAddress says whether a word has the form 0000:1b:00.0, of which the domain has four digits or,
// behind Intel's VMD, more.
func isAddress(word []byte) bool {
	const behind = len(":1b:00.0")
	at := len(word) - behind
	if at < 4 || at > 8 {
		return false
	}
	for i, c := range word {
		want := byte('0') // a digit
		switch i - at {
		case 0, 3:
			want = ':'
		case 6:
			want = '.'
		}
		if digit := c != ':' && c != '.'; want == '0' && !digit || want != '0' && c != want {
			return false
		}
	}
	return word[len(word)-1] <= '7'
}
