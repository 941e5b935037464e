package nodelock

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// The file has room for one line of whoever has the lock alone, and for one line, a seat, of
// each who shares it. A line counts for as long as the kernel has a write lock on it.
const (
	line  = 256 // bytes, the end included
	seats = 16  // who finds none shares the lock all the same, without a name
)

// everything is what an agent locks that wants no other beside it.
func everything() unix.Flock_t { return unix.Flock_t{Type: unix.F_WRLCK} }

// gate is what those lock who share: it is a part of everything.
func gate() unix.Flock_t { return unix.Flock_t{Type: unix.F_RDLCK, Len: 1} }

// seat is the place of a name, from 1 on.
func seat(i int) unix.Flock_t {
	return unix.Flock_t{Type: unix.F_WRLCK, Start: int64(i) * line, Len: line}
}

// sign notes who has the lock alone.
func (l *Lock) sign(holder string) error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(holder+"\n"), 0)
	return err
}

// sit notes who shares the lock, in the first seat that is free. The line of whoever had the
// lock alone goes: the gate is locked, so it is nobody's.
func (l *Lock) sit(holder string) error {
	if _, err := l.file.WriteAt(text(""), 0); err != nil {
		return err
	}
	for i := 1; i <= seats; i++ {
		held, err := lock(l.file, seat(i))
		if err != nil {
			return fmt.Errorf("note who shares it: %w", err)
		}
		if !held {
			_, err = l.file.WriteAt(text(holder), int64(i)*line)
			return err
		}
	}
	return nil
}

// text is a line with a name, filled up so that nothing is left of an earlier one.
func text(name string) []byte {
	b := bytes.Repeat([]byte(" "), line)
	copy(b, name)
	b[line-1] = '\n'
	return b
}

// holders are the names of those who have the lock of a file now.
func holders(f *os.File) string {
	if taken(f, gate()) { // by one alone
		return name(f, 0)
	}
	var names []string
	for i := 1; i <= seats; i++ {
		if !taken(f, seat(i)) {
			continue
		}
		if n := name(f, i); n != "" {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// taken says whether somebody else has a lock that keeps a part of a file from us.
func taken(f *os.File, part unix.Flock_t) bool {
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &part)
	return err == nil && part.Type != unix.F_UNLCK
}

// name reads a line. Of a torn file it is what there is.
func name(f *os.File, i int) string {
	b := make([]byte, line)
	n, _ := f.ReadAt(b, int64(i)*line) // the end of the file comes before that of the line
	first, _, _ := strings.Cut(string(b[:n]), "\n")
	return strings.TrimSpace(first)
}
