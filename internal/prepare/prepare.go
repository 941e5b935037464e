// Package prepare makes the devices of a claim ready for a pod, and gives them up again. What a
// claim has is written to disk before anything is done about it, so that whatever kills the
// process, the same call made again by the next one ends as if nothing had happened.
//
// kubelet, not the scheduler, is the last to ask, and this is the last that can refuse: the
// scheduler may hand a device on before its old pod has ended (a pod that is deleted by force),
// and it knows nothing of device plugins.
package prepare

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/dra"
)

// patience is how long a call may take. kubelet gives up after 45 seconds, and a call that it has
// given up would be at work beside its repetition.
const patience = 20 * time.Second

// Config says what an Engine works on.
type Config struct {
	// Pool is the name of the node's pool, which is the node's.
	Pool string
	// Records are the claims that have devices.
	Records *claim.Store
	// CDI is the directory of CDI specs.
	CDI string
	// Boot is the ID of this boot of the node.
	Boot string
	// Fresh looks at the node: what it returns was read after the call.
	Fresh func(context.Context) (*dra.Inventory, error)
	// HasNode says whether a node is there, by its path on the host.
	HasNode func(path string) bool
	// Kubelet asks kubelet who has what.
	Kubelet func(context.Context) (View, error)
	// Current says whether a node is a device's at this moment, by its PCI address.
	Current func(address, node string) bool
	// Owns says why devices of a type are not this driver's to hand out, nil when they are.
	Owns func(dra.Type) error
	// Claim asks the API server for a claim. It returns nil when there is none of that name.
	Claim func(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error)
	// Now is the time.
	Now func() time.Time
	Log *slog.Logger
}

// View is what kubelet says.
type View struct {
	// Plugged are the devices that a device plugin offers, or that a container has from one, by
	// PCI address: which resource it is and whose.
	Plugged map[string]string
	// Claims are the claims of containers, by UID as far as CDI names of ours tell them.
	Claims map[string]Use
	// Named are the claims of containers by namespace/name.
	Named map[string]bool
}

// Use is what containers have of a claim.
type Use struct {
	Claim     string   // namespace/name
	Addresses []string // PCI addresses of the devices
}

// Engine prepares and unprepares. Its methods may be called concurrently, and from several
// processes at once: what has to be one after the other waits for the records' lock.
type Engine struct {
	Config

	mu      sync.Mutex
	strikes map[string]time.Time // claims that seemed to have gone, and when first
}

// New makes an engine. It touches nothing yet.
func New(c Config) *Engine { return &Engine{Config: c, strikes: map[string]time.Time{}} }

// Result is what became of one claim.
type Result struct {
	Devices []kubeletplugin.Device
	Took    time.Duration
	Err     error
}

// Prepare makes the devices of claims ready, however often it is asked to, each for itself: an error
// of one is no reason to refuse another. A claim with an error has what it had before, or a record
// that says Preparing, which holds its devices until the call is repeated.
func (e *Engine) Prepare(ctx context.Context, claims []*resourceapi.ResourceClaim) map[types.UID]Result {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all := make(map[types.UID]Result, len(claims))
	var view *View // asked for once: kubelet answers so many questions a second and no more
	for _, c := range claims {
		begun := e.Now()
		wanted, err := e.wanted(c)
		if err == nil && len(wanted) > 0 && view == nil {
			var v View
			if v, err = e.Kubelet(ctx); err != nil {
				err = fmt.Errorf("make sure that nobody else has the devices: %w", err)
			} else {
				view = &v
			}
		}
		r := Result{Err: err}
		if err == nil && len(wanted) > 0 {
			r.Devices, r.Err = e.one(ctx, c, wanted, *view)
		}
		r.Took = e.Now().Sub(begun)
		all[c.UID] = r
	}
	return all
}

// one prepares one claim. The API server is asked before the lock is taken, since it may take its
// time; the node is looked at under it, so that nobody changes in between what the look says.
func (e *Engine) one(ctx context.Context, c *resourceapi.ResourceClaim, wanted []want, view View) (devices []kubeletplugin.Device, err error) {
	released, err := e.stillAllocated(ctx, c)
	if err != nil {
		return nil, err
	}
	unlock, err := e.Records.Lock(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if now, _, err := e.Records.Released(string(c.UID)); err != nil || !now.Equal(released) {
		return nil, errors.Join(err, errors.New("claim was released while it was about to be prepared"))
	}
	inventory, err := e.Fresh(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the devices: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err // kubelet has given up, and may have asked for the opposite since
	}
	return e.prepare(c, wanted, inventory, view)
}

// marked is how often a claim that is prepared again is written anew, for whoever asks how long ago
// anybody has asked for it.
const marked = time.Minute

// prepare is Prepare under the lock.
func (e *Engine) prepare(c *resourceapi.ResourceClaim, wanted []want, inventory *dra.Inventory, view View) ([]kubeletplugin.Device, error) {
	uid := string(c.UID)
	before, found, err := e.known(uid)
	if err != nil {
		return nil, err
	}
	r := claim.Record{UID: uid, Namespace: c.Namespace, Name: c.Name, Since: e.Now()}
	if found {
		r = before
	}
	if r.Devices, err = e.devices(uid, wanted, inventory, view); err != nil {
		return nil, err
	}
	if found && !sameDevices(before.Devices, r.Devices) {
		return nil, fmt.Errorf("claim has other devices than it was prepared with (%s): its earlier pod has to be torn down first", names(before.Devices))
	}
	again := found && before.State == claim.Prepared && before.Boot == e.Boot
	r.Boot, r.State, r.Changed = e.Boot, claim.Preparing, e.Now()
	if !again {
		if err := e.Records.Put(r); err != nil {
			return nil, err
		}
	}
	// Also of a claim that is prepared: after a reboot, or when somebody has emptied the
	// directory, the runtime would not find its devices.
	if err := e.resolve(r.Devices, uid, inventory); err != nil {
		return nil, err
	}
	if !again || !sameNodes(before.Devices, r.Devices) || e.Now().Sub(before.Changed) >= marked {
		r.State = claim.Prepared
		if err := e.Records.Put(r); err != nil {
			return nil, err
		}
	}
	if !again {
		e.Log.Info("prepared", "claim", c.Namespace+"/"+c.Name, "device", names(r.Devices))
	}
	return results(r.Devices), e.Records.Discard(uid) // what was put aside has been made good
}

// known is what was written of a claim. A record that cannot be trusted is put aside: the claim
// itself says what it has.
func (e *Engine) known(uid string) (claim.Record, bool, error) {
	r, found, err := e.Records.Get(uid)
	if err == nil || !damaged(err) {
		return r, found, err
	}
	if kept(err) {
		return r, false, err
	}
	return claim.Record{}, false, e.putAside(uid, err)
}

// stillAllocated asks the API server once more about a claim that was released a short time ago, and
// returns when that was: a call that was held up must not bring back what has ended.
func (e *Engine) stillAllocated(ctx context.Context, c *resourceapi.ResourceClaim) (released time.Time, err error) {
	at, was, err := e.Records.Released(string(c.UID))
	if err != nil || !was {
		return at, err
	}
	now, err := e.Claim(ctx, c.Namespace, c.Name)
	switch {
	case err != nil:
		return at, fmt.Errorf("make sure that the claim, which was released before, is in use again: %w", err)
	case now == nil || now.UID != c.UID || now.Status.Allocation == nil || len(now.Status.ReservedFor) == 0:
		return at, errors.New("claim was released and is not in use any more")
	}
	return at, nil
}

// results is the answer to kubelet.
func results(devices []claim.Device) []kubeletplugin.Device {
	all := make([]kubeletplugin.Device, 0, len(devices))
	for _, d := range devices {
		r := kubeletplugin.Device{Requests: d.Requests, PoolName: d.Pool, DeviceName: d.Name, CDIDeviceIDs: d.CDI}
		if d.ShareID != "" {
			r.ShareID = new(types.UID(d.ShareID))
		}
		all = append(all, r)
	}
	return all
}
