package prepare

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/claim"
)

// Unprepare gives up what a claim has, from what is on disk alone: the claim may be gone by now.
// To give up what is not held is fine.
func (e *Engine) Unprepare(ctx context.Context, uid string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	unlock, err := e.Records.Lock(ctx)
	if err != nil {
		return err
	}
	return errors.Join(e.unprepare(uid), unlock())
}

func (e *Engine) unprepare(uid string) error {
	r, found, err := e.Records.Get(uid)
	switch {
	case err != nil && !damaged(err):
		return err
	case err != nil && kept(err):
		return err
	case err != nil:
		if err := e.Records.Quarantine(uid); err != nil {
			return err
		}
	case found && r.State != claim.Unpreparing:
		r.State, r.Boot, r.Changed = claim.Unpreparing, e.Boot, e.Now()
		// Where there is no room for that it is left out: what follows takes none, and a pod that
		// cannot end would keep the room that it has.
		if err := e.Records.Put(r); err != nil && !full(err) {
			return err
		}
	}
	// The spec before the record: none may be on disk that nobody knows of.
	if err := e.forget(uid); err != nil {
		return err
	}
	if err := errors.Join(e.Records.Discard(uid), e.Records.Remove(uid, e.Now())); err != nil {
		return err
	}
	if found {
		e.Log.Info("unprepared", "claim", r.Namespace+"/"+r.Name, "device", names(r.Devices))
	}
	return nil
}

// damaged says whether an error is about a record that cannot be trusted, and kept whether that
// may be right all the same: a later version of the driver has written it, or the system could
// not read it. Then it is left for somebody who can.
func damaged(err error) bool { return errors.As(err, new(*claim.DamagedError)) }

func kept(err error) bool {
	var d *claim.DamagedError
	return errors.As(err, &d) && (d.Newer || d.Unread)
}

// full says whether an error is that a file system has no room, or a quota or a limit has none.
func full(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
