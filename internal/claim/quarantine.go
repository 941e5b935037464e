package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"kata-device-plugin/internal/wholefile"
)

var (
	errAside = errors.New("put aside, though it reads well")
	errWhole = errors.New("its record reads well")
)

// Quarantine puts the damaged file of a claim aside, for a person to look at: UID.damaged.NUMBER.
// List has it among the damaged until it is discarded. It can be called again after an error.
// What is whole, of a later version, or cannot be read at the moment stays.
func (s *Store) Quarantine(uid string) error {
	doc, err := s.own(uid)
	var damaged *DamagedError
	switch {
	case doc != nil:
		err = errWhole
	case err == nil:
		err = s.missing(uid)
	case errors.As(err, &damaged) && !damaged.Newer && !damaged.Unread:
		err = s.moveAside(uid)
	}
	if err == nil {
		err = wholefile.SyncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("quarantine record of claim %s: %w", uid, err)
	}
	return nil
}

// missing is an error if nothing of a claim was moved before.
func (s *Store) missing(uid string) error {
	all, err := s.named(asideExt)
	if err == nil && !slices.ContainsFunc(all, func(a named) bool { return a.uid == uid }) {
		err = fs.ErrNotExist
	}
	return err
}

// moveAside takes the next number that is free: each file may be the one that tells a person
// what went wrong.
func (s *Store) moveAside(uid string) error {
	for n := 1; ; n++ {
		path := s.path(uid, asideExt+strconv.Itoa(n))
		_, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return wholefile.Cause(os.Rename(s.path(uid, ext), path))
		}
		if err != nil {
			return err
		}
	}
}

// Discard removes the files of a claim that are in quarantine. Its hardware is then held by
// nothing but its record, if there is one.
func (s *Store) Discard(uid string) error {
	err := checkUID(uid)
	if err == nil {
		err = s.locked()
	}
	var all []named
	if err == nil {
		all, err = s.named(asideExt)
	}
	for _, a := range all {
		if err == nil && a.uid == uid {
			err = remove(a.path)
		}
	}
	if err == nil {
		err = wholefile.SyncDir(s.dir)
	}
	if err != nil {
		return fmt.Errorf("discard damaged records of claim %s: %w", uid, err)
	}
	return nil
}

// lookAside says what is wrong with a file that was put aside; nil if it was discarded meanwhile.
func lookAside(file named) *Damaged {
	doc, damaged := look(file.path, file.uid)
	if doc != nil { // a person renamed it
		damaged = &Damaged{UID: file.uid, Path: file.path, Err: errAside}
		for i := range doc.record.Devices {
			damaged.Group = append(damaged.Group, doc.record.Devices[i].Group...)
		}
		damaged.Group = unique(damaged.Group)
	}
	if damaged != nil {
		damaged.Quarantined = true
	}
	return damaged
}
