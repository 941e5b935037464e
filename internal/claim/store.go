package claim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"kata-device-plugin/internal/wholefile"
)

// What comes behind the UID in the names of files.
const (
	ext         = ".json"      // the record; what ends otherwise is none
	asideExt    = ".damaged."  // and a number: was the record
	releasedExt = ".released." // and a time: was released then
)

// Store is a directory with a file for each claim. All its methods may be called concurrently.
// Those that write want the lock to be held, and return ErrNotLocked otherwise: Put, Remove,
// Forget, Quarantine and Discard.
type Store struct {
	dir  string
	turn chan struct{}           // has one element while the lock is held or waited for
	held atomic.Pointer[os.File] // the lock file, while the lock is held
}

// Open makes the directory, if it is not there yet, and sees to it that no other user can look
// into it. A directory that is as it has to be may be read-only; then only reading works.
func Open(dir string) (*Store, error) {
	s := &Store{dir: filepath.Clean(dir), turn: make(chan struct{}, 1)}
	info, err := os.Stat(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeDir(s.dir); err == nil {
			info, err = os.Stat(s.dir)
		}
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", s.dir)
	}
	if err == nil && info.Mode().Perm() != 0o700 { // kubelet makes it for everybody
		err = os.Chmod(s.dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("open records of claims: %w", err)
	}
	return s, nil
}

// path is where something of a claim is. All is in one directory: Landlock takes from a process
// the right to rename from one into another, on some kernels without exception.
func (s *Store) path(uid, suffix string) string { return filepath.Join(s.dir, uid+suffix) }

// named finds the files whose names are a UID and one of the suffixes that begin so.
func (s *Store) named(suffix string) (all []named, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if uid, rest, ok := strings.Cut(e.Name(), suffix); ok && checkUID(uid) == nil {
			all = append(all, named{uid, rest, filepath.Join(s.dir, e.Name())})
		}
	}
	return all, nil
}

// named is a file, with its claim and what its name ends with.
type named struct{ uid, rest, path string }

// Get reads the record of a claim. The error is a *DamagedError if there is a file that cannot
// be trusted. What was moved to quarantine is not found.
func (s *Store) Get(uid string) (r Record, found bool, err error) {
	if err := checkUID(uid); err != nil {
		return Record{}, false, fmt.Errorf("read record of claim: %w", err)
	}
	doc, damaged := look(s.path(uid, ext), uid)
	switch {
	case damaged != nil:
		return Record{}, false, &DamagedError{*damaged}
	case doc != nil:
		return doc.record, true, nil
	}
	// No file in a directory that is gone says nothing about the claim.
	if _, err := os.Stat(s.dir); err != nil {
		return Record{}, false, fmt.Errorf("read record of claim %s: %w", uid, err)
	}
	return Record{}, false, nil
}

// List reads all records, and finds what is damaged, in quarantine too; both sorted by UID.
// A damaged file hides nothing else. After an error, what is not in the lists may be there
// nevertheless. Without the lock that is so as well for what is written at the moment: some
// file systems leave a name out of a directory's list while it is renamed.
func (s *Store) List() (records []Record, damaged []Damaged, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("list records of claims: %w", err)
	}
	for _, e := range entries {
		uid, ok := strings.CutSuffix(e.Name(), ext)
		if !ok {
			continue // the lock, what is being written, and what is no record any more
		}
		doc, bad := look(filepath.Join(s.dir, e.Name()), uid)
		if doc != nil {
			records = append(records, doc.record)
		}
		if bad != nil {
			damaged = append(damaged, *bad)
		}
	}
	aside, err := s.named(asideExt)
	if err != nil {
		err = fmt.Errorf("list damaged records of claims: %w", err)
	}
	for _, file := range aside {
		if bad := lookAside(file); bad != nil {
			damaged = append(damaged, *bad)
		}
	}
	for i := range damaged {
		if checkUID(damaged[i].UID) != nil {
			damaged[i].UID = ""
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.UID, b.UID) })
	slices.SortFunc(damaged, func(a, b Damaged) int {
		return cmp.Or(strings.Compare(a.UID, b.UID), strings.Compare(a.Path, b.Path))
	})
	return records, damaged, err
}

// Put writes a record. When it returns nil, the record survives a power cut. After an error
// there is the old record or the new one. A file that cannot be trusted is not written over,
// but a *DamagedError: move it to quarantine before.
func (s *Store) Put(r Record) error {
	old, err := s.own(r.UID)
	if err == nil {
		err = r.check()
	}
	var data []byte
	if err == nil {
		data, err = encode(r, old)
	}
	if err == nil {
		err = wholefile.Write(s.path(r.UID, ext), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write record of claim %s: %w", r.UID, err)
	}
	return nil
}

// own reads the file of a claim for somebody who is about to replace or remove it. It is nil
// if there is none.
func (s *Store) own(uid string) (*document, error) {
	if err := checkUID(uid); err != nil {
		return nil, err
	}
	if err := s.locked(); err != nil {
		return nil, err
	}
	doc, damaged := look(s.path(uid, ext), uid)
	if damaged != nil {
		return nil, &DamagedError{*damaged}
	}
	return doc, nil
}
