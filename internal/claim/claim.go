// Package claim keeps which claim holds which hardware, so that a driver that was killed,
// replaced or rebooted under its pods still knows it. There is one file for each claim: what
// is damaged in one hides nothing of the others.
//
// Nothing is cached. Every call reads the disk, since two instances of a driver are beside
// each other while it is updated. Whoever decides on what it reads, or writes, holds the lock.
package claim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// State says how far a claim has come. It is written before the step it is about, so that a
// driver that died in it repeats it.
type State string

// The states of a claim. Its hardware is held in each of them.
const (
	Preparing   State = "Preparing"
	Prepared    State = "Prepared"
	Unpreparing State = "Unpreparing"
)

// Record is a claim that holds hardware, or is about to.
type Record struct {
	UID, Namespace, Name string
	Boot                 string // boot ID of the node when the state was written
	State                State
	Since                time.Time // when it first was Preparing
	Changed              time.Time
	Devices              []Device
}

// Device is one result of a claim's allocation.
type Device struct {
	Pool, Name string   // as allocated
	Address    string   // of the PCI function
	Group      []string // addresses of all functions of the IOMMU group: the hardware that is held
	Requests   []string
	ShareID    string   // "" for none
	Admin      bool     // admin access holds nothing
	CDI        []string // qualified CDI names
	Nodes      []string // paths of device nodes on the host
}

// check refuses what would not be a record. It is asked before a record is written and after
// one was read: a checksum says that a file is as it was written, not that it makes sense.
func (r *Record) check() error {
	if err := checkUID(r.UID); err != nil {
		return err
	}
	if !slices.Contains([]State{Preparing, Prepared, Unpreparing}, r.State) {
		return fmt.Errorf("unknown state %q", r.State)
	}
	for _, t := range []time.Time{r.Since, r.Changed} {
		if year := t.UTC().Year(); year < 0 || year > 9999 {
			return fmt.Errorf("a time in the year %d", year) // JSON has no such
		}
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.Pool == "" || d.Name == "" {
			return fmt.Errorf("device %d has no pool or no name", i)
		}
		// A device that holds nothing would be given to the next claim as well.
		if !d.Admin && (d.Address == "" || !slices.Contains(d.Group, d.Address)) {
			return fmt.Errorf("device %s: its group %v does not have its address %q", d.Name, d.Group, d.Address)
		}
	}
	return nil
}

const maxUID = 128

var errUID = errors.New("not a claim's UID")

// checkUID lets through what can be part of a file's name. The API server makes UUIDs, but
// nothing says that it always will. There are no dots: in the names of files, what comes
// behind a UID begins with one.
func checkUID(uid string) error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	if uid == "" || len(uid) > maxUID || strings.Trim(uid, letters) != "" {
		return fmt.Errorf("%.140q: %w", uid, errUID)
	}
	return nil
}
