package prepare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/dra"
)

const (
	// settled is how long a record has to be unchanged before anybody doubts it. kubelet tears
	// down what it knows of by itself, and does not name a pod that was deleted by force while its
	// VM is still ending.
	settled = time.Hour
	// between is what has to lie between two confirmations.
	between = 30 * time.Minute
	// remembered is how long it is known that a claim was released: longer than any call that
	// may be held up.
	remembered = 30 * time.Minute
)

// Sweep releases the claims that nobody will ever ask to unprepare: those that were deleted, or
// allocated anew, while kubelet had forgotten them. The API server and kubelet have to agree, and
// to say so twice, some minutes apart. If one of them does not answer, nothing is released: a
// missing answer is not a no.
func (e *Engine) Sweep(ctx context.Context) (released []string, err error) {
	view, err := e.Kubelet(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for claims that have ended: %w", err)
	}
	suspects, err := e.suspects(ctx)
	if err != nil {
		return nil, err
	}
	gone := map[string]claim.Record{}
	for _, r := range suspects {
		if view.has(r) {
			continue
		}
		there, err := e.exists(ctx, r)
		if err != nil {
			return nil, fmt.Errorf("look for claims that have ended: %w", err)
		}
		if !there {
			gone[r.UID] = r
		}
	}
	var errs []error
	for _, uid := range e.confirmed(gone) {
		did, err := e.release(ctx, gone[uid])
		if err != nil {
			errs = append(errs, fmt.Errorf("release claim %s: %w", uid, err))
		}
		if did {
			released = append(released, uid)
		}
	}
	return released, errors.Join(errs...)
}

// has says whether containers have a claim. Another claim of its name does not count.
func (v *View) has(r claim.Record) bool {
	name := r.Namespace + "/" + r.Name
	if _, used := v.Claims[r.UID]; used || !v.Named[name] {
		return used
	}
	for _, use := range v.Claims {
		if use.Claim == name {
			return false
		}
	}
	return true
}

// release gives up a claim, if nobody has asked for it since it was listed.
func (e *Engine) release(ctx context.Context, listed claim.Record) (bool, error) {
	unlock, err := e.Records.Lock(ctx)
	if err != nil {
		return false, err
	}
	now, found, err := e.Records.Get(listed.UID)
	if err != nil || !found || now.State != listed.State || !now.Changed.Equal(listed.Changed) {
		return false, errors.Join(err, unlock())
	}
	e.Log.Warn("released a claim that neither the API server nor kubelet knows any more", "claim", listed.UID)
	err = e.unprepare(listed.UID)
	return err == nil, errors.Join(err, unlock())
}

// suspects are the claims whose records have not changed for a while. Of one whose record cannot
// be read, nothing but the UID is known: kubelet alone can say that it has ended, by not naming
// it, so it stays until somebody looks after it. What was released long ago is forgotten.
func (e *Engine) suspects(ctx context.Context) ([]claim.Record, error) {
	unlock, err := e.Records.Lock(ctx)
	if err != nil {
		return nil, err
	}
	records, _, err := e.Records.List()
	if err := errors.Join(err, e.Records.Forget(e.Now().Add(-remembered)), unlock()); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(records, func(r claim.Record) bool { return e.Now().Sub(r.Changed) < settled }), nil
}

// exists says whether a claim is there, has the devices that the record has, and is somebody's.
func (e *Engine) exists(ctx context.Context, r claim.Record) (bool, error) {
	c, err := e.Claim(ctx, r.Namespace, r.Name)
	if err != nil || c == nil || string(c.UID) != r.UID || c.Status.Allocation == nil || len(c.Status.ReservedFor) == 0 {
		return false, err
	}
	var devices []claim.Device
	for i := range c.Status.Allocation.Devices.Results {
		if result := &c.Status.Allocation.Devices.Results[i]; result.Driver == dra.Driver {
			devices = append(devices, claim.Device{Pool: result.Pool, Name: result.Device})
		}
	}
	return slices.EqualFunc(devices, r.Devices, func(a, b claim.Device) bool { return a.Pool == b.Pool && a.Name == b.Name }), nil
}

// confirmed are the claims that have been gone for long enough.
func (e *Engine) confirmed(gone map[string]claim.Record) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.strikes, func(uid string, _ time.Time) bool { _, still := gone[uid]; return !still })
	var all []string
	for uid := range gone {
		first, known := e.strikes[uid]
		switch {
		case !known:
			e.strikes[uid] = e.Now()
		case e.Now().Sub(first) >= between:
			all = append(all, uid)
			delete(e.strikes, uid)
		}
	}
	slices.Sort(all)
	return all
}
