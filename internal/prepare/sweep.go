package prepare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
)

const (
	// settled is how long a record has to be unchanged before anybody doubts it. kubelet tears
	// down what it knows of by itself, and a pod may take minutes to end.
	settled = 5 * time.Minute
	// between is what has to lie between two confirmations.
	between = 4 * time.Minute
	// remembered is how long it is known that a claim was released: longer than any call that
	// may be held up.
	remembered = 30 * time.Minute
)

// suspect is a claim of which there is a record.
type suspect struct {
	uid, namespace, name string
}

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
	gone := map[string]bool{}
	for _, s := range suspects {
		_, used := view.Claims[s.uid]
		if used || view.Named[s.namespace+"/"+s.name] {
			continue
		}
		there, err := e.exists(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("look for claims that have ended: %w", err)
		}
		if !there {
			gone[s.uid] = true
		}
	}
	var errs []error
	for _, uid := range e.confirmed(gone) {
		e.Log.Warn("released a claim that neither the API server nor kubelet knows any more", "claim", uid)
		if err := e.Unprepare(ctx, uid); err != nil {
			errs = append(errs, fmt.Errorf("release claim %s: %w", uid, err))
			continue
		}
		released = append(released, uid)
	}
	return released, errors.Join(errs...)
}

// suspects are the claims whose records have not changed for a while. Of one whose record cannot
// be read, nothing but the UID is known: kubelet alone can say that it has ended, by not naming
// it, so it stays until somebody looks after it. What was released long ago is forgotten.
func (e *Engine) suspects(ctx context.Context) ([]suspect, error) {
	unlock, err := e.Records.Lock(ctx)
	if err != nil {
		return nil, err
	}
	records, _, err := e.Records.List()
	if err := errors.Join(err, e.Records.Forget(e.Now().Add(-remembered)), unlock()); err != nil {
		return nil, err
	}
	var all []suspect
	for _, r := range records {
		if e.Now().Sub(r.Changed) >= settled {
			all = append(all, suspect{r.UID, r.Namespace, r.Name})
		}
	}
	return all, nil
}

// exists says whether a claim is there and allocated to somebody.
func (e *Engine) exists(ctx context.Context, s suspect) (bool, error) {
	c, err := e.Claim(ctx, s.namespace, s.name)
	if err != nil {
		return false, err
	}
	return c != nil && string(c.UID) == s.uid && c.Status.Allocation != nil && reserved(c), nil
}

// reserved says whether a pod has a claim, or is about to.
func reserved(c *resourceapi.ResourceClaim) bool { return len(c.Status.ReservedFor) > 0 }

// confirmed are the claims that have been gone for long enough.
func (e *Engine) confirmed(gone map[string]bool) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.strikes, func(uid string, _ time.Time) bool { return !gone[uid] })
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
