package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/wholefile"
)

// stamp is how the time of a release is part of a file's name.
const stamp = "20060102T150405.000000000Z"

// tombstone is a file that says that a claim was released, and when: UID.released.TIME. What
// is in it is the last record, for people. Everything else is in the name, so that one rename
// releases a claim, at one moment, and on a full disk too.
type tombstone struct {
	named
	at time.Time
}

// Remove releases a claim: its record is gone, and Released knows of it until Forget. Both
// survive a power cut when it returns nil. Removing what is not there is fine, and leaves word
// as well. A file that cannot be trusted is not removed, but a *DamagedError.
func (s *Store) Remove(uid string, at time.Time) error {
	old, err := s.own(uid)
	if err == nil {
		err = s.bury(uid, at, old != nil)
	}
	if err != nil {
		return fmt.Errorf("remove record of claim %s: %w", uid, err)
	}
	return nil
}

func (s *Store) bury(uid string, at time.Time, there bool) error {
	name := at.UTC().Format(stamp)
	if _, err := time.Parse(stamp, name); err != nil {
		return err // a year of five digits
	}
	path := s.path(uid, releasedExt+name)
	var err error
	if there {
		err = os.Rename(s.path(uid, ext), path)
	} else {
		err = touch(path)
	}
	if err != nil {
		return wholefile.Cause(err)
	}
	if err := s.dropOlder(uid); err != nil {
		return err
	}
	return wholefile.SyncDir(s.dir)
}

func touch(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// dropOlder leaves a claim's last tombstone only.
func (s *Store) dropOlder(uid string) error {
	all, err := s.tombstones()
	last := latest(all, uid)
	for _, t := range all {
		if err == nil && t.uid == uid && t.path != last.path {
			err = remove(t.path)
		}
	}
	return err
}

// Released says when a claim was removed last, if that was not forgotten since.
func (s *Store) Released(uid string) (at time.Time, ok bool, err error) {
	err = checkUID(uid)
	var all []tombstone
	if err == nil {
		all, err = s.tombstones()
	}
	if err != nil {
		return time.Time{}, false, fmt.Errorf("look whether claim %s was released: %w", uid, err)
	}
	last := latest(all, uid)
	return last.at, last.path != "", nil
}

// Forget forgets the claims that were removed before a time.
func (s *Store) Forget(before time.Time) error {
	err := s.locked()
	var all []tombstone
	if err == nil {
		all, err = s.tombstones()
	}
	var errs []error
	gone := false
	for _, t := range all {
		if t.at.Before(before) {
			errs = append(errs, remove(t.path))
			gone = true
		}
	}
	if gone {
		errs = append(errs, wholefile.SyncDir(s.dir))
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("forget released claims: %w", err)
	}
	return nil
}

// tombstones lists them. What is named for no time is none.
func (s *Store) tombstones() (all []tombstone, err error) {
	files, err := s.named(releasedExt)
	for _, file := range files {
		if at, err := time.Parse(stamp, file.rest); err == nil {
			all = append(all, tombstone{file, at})
		}
	}
	return all, err
}

// latest is the last tombstone of a claim.
func latest(all []tombstone, uid string) (last tombstone) {
	for _, t := range all {
		if t.uid == uid && (last.path == "" || t.at.After(last.at)) {
			last = t
		}
	}
	return last
}

// remove removes a file. That somebody else did is fine.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
