package dradriver

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/lookout"
	"kata-device-plugin/internal/nodelock"
	"kata-device-plugin/internal/prepare"
)

const (
	// unsettled is how long the first publication waits for what the kernel is only passing
	// through: a driver that starts beside a rebind would take a device from the slices and put
	// it back.
	unsettled = 5 * time.Second
	// soon is how often it is looked whether kubelet has registered the driver, which sends no
	// event, until it has.
	soon = time.Second
	// busy is when to come back for the records, which a call has locked.
	busy = 100 * time.Millisecond
	// unregistered is how long kubelet may take to register the driver before it is worth a word.
	unregistered = 10 * time.Second
)

// state is what the loop knows. Only the loop uses it.
type state struct {
	begun     time.Time
	torn      bool                   // of the last look
	records   prepare.State          // Withheld is nil while they were never read
	unread    error                  // why they could not be read, the last time
	absent    time.Time              // since when kubelet does not have the driver, zero while it has
	published map[string]*dra.Device // by name, as published last
	pool      *resourceslice.Pool    // the last one
	uid       types.UID              // of the node that it was published for
	waiting   bool                   // for another copy, which publishes
	told      map[string]bool        // findings of which there was an event
	server    string                 // the API server's version, as it was last
}

// keepLooking looks, publishes and reports until ctx ends.
func (d *Driver) keepLooking(ctx context.Context) {
	d.state.begun = time.Now()
	for within := time.Duration(0); ; {
		how, ok := d.lookout.Wait(ctx, within)
		if !ok {
			return
		}
		if how != lookout.None {
			snapshot := d.lookout.Observe(how)
			d.state.torn = snapshot.Torn() || snapshot.Partial()
			d.inventory.Store(dra.Take(snapshot))
			d.plugin.metrics.looked.SetToCurrentTime()
		}
		d.lookout.Done() // who asked may hold the records, which come next
		inventory := d.inventory.Load()
		if inventory == nil {
			continue
		}
		within = d.settle(inventory)
	}
}

// settle makes everything agree with an inventory, and returns when to do so again without any
// reason.
func (d *Driver) settle(inventory *dra.Inventory) time.Duration {
	free := d.reconcile(inventory)
	w, found := d.world(inventory)
	offers := w.offers()
	found = append(found, inventory.Findings...)
	for i := range offers {
		o := &offers[i]
		if o.unpublished != nil {
			found = append(found, *o.unpublished)
		}
		if _, refused := w.refused[o.device.Type]; refused && !o.held {
			continue // what is wrong with it is for whoever offers it
		}
		for _, f := range o.against {
			found = append(found, f)
		}
	}
	finding.Sort(found)
	d.publish(offers, w.tainted)
	d.plugin.feed.set(d.options.Node, offers)
	d.plugin.metrics.offer(offers)
	d.plugin.metrics.records(d.state.records.Records, len(d.state.records.Damaged))
	again := d.report(found, offers)
	if !free {
		again = min(again, busy)
	}
	return again
}

// reconcile brings what is on disk up to date, and says whether it could. What cannot be read now is
// as it was. While a call has the records there is nothing to do but to come back: the call may be
// waiting for a look. What the kernel is only passing through when the driver starts is no reason to
// take a spec away.
func (d *Driver) reconcile(inventory *dra.Inventory) bool {
	if d.state.records.Withheld == nil && d.state.torn && time.Since(d.state.begun) < unsettled {
		return true
	}
	view, _, _, _ := d.answers.last()
	now, err := d.engine.Reconcile(inventory, view)
	if errors.Is(err, claim.ErrBusy) {
		return false
	}
	d.journal.Once("records of claims", err)
	d.state.unread = nil
	if now.Withheld != nil {
		d.state.records = now
	} else {
		d.state.unread = err
	}
	return true
}

// world is all that decides, and what is wrong with it.
func (d *Driver) world(inventory *dra.Inventory) (*world, []finding.Finding) {
	view, viewErr, node, nodeErr := d.answers.last()
	var found []finding.Finding
	if viewErr != nil {
		found = append(found, finding.New(finding.KubeletSilent(), "", finding.Evidence{Path: viewErr.Error()}))
	}
	if nodeErr != nil {
		found = append(found, finding.New(finding.NodeUnread(), "", finding.Evidence{Path: nodeErr.Error()}))
	}
	if d.state.unread != nil {
		found = append(found, finding.New(finding.RecordsUnread(), "", finding.Evidence{Path: d.state.unread.Error()}))
	}
	if node != nil {
		d.renewed(node.server)
	}
	w := &world{
		inventory: inventory, withheld: d.state.records.Withheld, records: d.state.records.Records,
		before: d.state.published, tainted: !d.plugin.untainted.Load(),
	}
	if view == nil || node == nil {
		return w, found // nothing is published yet
	}
	w.plugged = view.Plugged
	w.refused = d.owner.settle(inventory, d.options.Excluded, node.allocatable)
	return w, found
}

// renewed is told the API server's version. What the old one dropped another one may keep.
func (d *Driver) renewed(version string) {
	if version == "" || version == d.state.server {
		return
	}
	if d.state.server != "" && d.plugin.untainted.Swap(false) {
		d.log.Info("the API server is another version, so taints are tried again", "reason", d.state.server+" before, "+version+" now")
	}
	d.state.server = version
}

// publish hands the offers to the API server, if they are not what it has been handed. Before
// kubelet and the API server have answered once and the records were read, and while the kernel is in
// between two states, a publication would only be taken back.
func (d *Driver) publish(offers []offer, tainted bool) {
	view, _, node, _ := d.answers.last()
	if view == nil || node == nil || d.state.records.Withheld == nil || d.state.pool == nil && d.state.torn && time.Since(d.state.begun) < unsettled {
		return
	}
	if !d.takeTurn() {
		return
	}
	all := published(offers, tainted)
	pool := dra.Pool(all)
	if d.state.pool != nil && d.state.uid == node.uid && reflect.DeepEqual(*d.state.pool, pool) {
		return
	}
	d.publisher.publish(pool, node.uid)
	d.state.uid = node.uid
	d.plugin.metrics.slices.WithLabelValues("wanted").Set(float64(len(pool.Slices)))
	before := d.state.published
	d.state.pool, d.state.published = &pool, map[string]*dra.Device{}
	var added, gone []string
	for _, o := range all {
		d.state.published[o.Device.Name] = o.Device
		if before[o.Device.Name] == nil {
			added = append(added, o.Device.Name)
		}
	}
	for name := range before {
		if d.state.published[name] == nil {
			gone = append(gone, name)
		}
	}
	d.logPublished(added, gone)
}

// takeTurn says whether this copy may publish. In a rolling update two run beside each other, and two
// that publish different things, since one knows an attribute more, would go on correcting each
// other. One that does not publish may when the other one has ended, and publishes everything then.
func (d *Driver) takeTurn() bool {
	_, err := d.turn.Take()
	mine, waiting := err == nil, errors.Is(err, nodelock.ErrHeld)
	if waiting {
		err = nil
	}
	d.journal.Once("right to publish", err)
	if waiting && !d.state.waiting {
		d.log.Info("another copy of the driver publishes; this one will when that has ended")
	}
	d.state.waiting = waiting
	if !mine && d.state.pool != nil {
		d.publisher.stop()
		d.state.pool = nil
	}
	return mine
}

func (d *Driver) logPublished(added, gone []string) {
	if len(added) > 0 {
		d.log.Info("published", "device", added)
	}
	if len(gone) > 0 {
		d.log.Info("published no longer", "device", gone)
	}
}

// report tells the log, the probes and people what is the case, and returns when to look at it
// again.
func (d *Driver) report(found []finding.Finding, offers []offer) time.Duration {
	serves := d.serveAgain()
	registered := d.registered()
	d.plugin.metrics.setRegistered(registered)
	if d.lacks(registered, time.Now()) {
		found = append(found, finding.New(finding.DriverUnregistered(), "", finding.Evidence{Path: d.registry()}))
	}
	d.tell(found)
	d.journal.Findings(found)
	var why []string
	for _, f := range found {
		if f.Blocks {
			why = append(why, f.String())
		}
	}
	if !registered && len(why) == 0 {
		why = append(why, finding.New(finding.DriverUnregistered(), "").String())
	}
	// A copy that waits for another one is ready: a rolling update ends the old one only then.
	// A driver that was ready stays so while what it has just published is on its way.
	there := d.publisher.inStep() || d.journal.WasReady() && !d.publisher.lags(time.Now())
	ready := len(why) == 0 && (d.state.waiting || d.state.pool != nil && there)
	if len(why) == 0 && !ready {
		why = append(why, "the API server does not have the devices as they are to be published")
	}
	d.health.Ready(ready)
	d.journal.Ready(ready, strings.Join(why, "; "), d.version, summary(offers))
	if !ready || !serves || d.state.waiting {
		return soon
	}
	return d.options.Poll
}

// lacks says whether kubelet has not had the driver for so long that somebody has to be told.
func (d *Driver) lacks(registered bool, now time.Time) bool {
	if registered {
		d.state.absent = time.Time{}
		return false
	}
	if d.state.absent.IsZero() {
		d.state.absent = now
	}
	return now.Sub(d.state.absent) >= unregistered
}

// registered says whether kubelet has the driver. One that does not answer has nobody.
func (d *Driver) registered() bool {
	_, viewErr, _, _ := d.answers.last()
	return d.serving.registered() && viewErr == nil
}

// serveAgain makes sockets that somebody has removed, as a script that cleans kubelet's directories
// does, and says whether they are there. Whoever removes them at once again is waited for.
func (d *Driver) serveAgain() bool {
	lost := d.serving.lost()
	if lost == "" || time.Since(d.serving.begun) < soon {
		return lost == ""
	}
	d.log.Warn("serving kubelet anew", "reason", "somebody has removed "+lost)
	d.serving.end()
	if err := d.serving.begin(); err != nil {
		d.plugin.fatal(err) // a directory that was made anew is seen by a new container only
	}
	return true
}

// tell makes an event of what somebody has to do something about, once.
func (d *Driver) tell(found []finding.Finding) {
	now := map[string]bool{}
	for _, f := range found {
		var reason string
		switch f.ID {
		case finding.HeldElsewhere().ID, finding.StillAllocatable().ID, finding.Plugged().ID:
			reason = reasonNotOffered
		case finding.RecordDamaged().ID:
			reason = reasonDamaged
		default:
			continue
		}
		now[f.Key()] = true
		if !d.state.told[f.Key()] {
			d.plugin.events.onNode(reason, fmt.Sprintf("%s %s: %s", f.Device, f, f.Remedy))
		}
	}
	d.state.told = now
}

// summary says how many devices of each type can be had: "gpu 8/8".
func summary(offers []offer) []string {
	free, all := map[dra.Type]int{}, map[dra.Type]int{}
	for _, o := range offers {
		all[o.device.Type]++
		if o.unpublished == nil && len(o.against) == 0 {
			free[o.device.Type]++
		}
	}
	lines := []string{}
	for _, t := range dra.Types() {
		if all[t] > 0 {
			lines = append(lines, fmt.Sprintf("%s %d/%d", t, free[t], all[t]))
		}
	}
	return lines
}
