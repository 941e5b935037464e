package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/kubelet"
	"kata-device-plugin/internal/nodelock"
)

// offer is one resource that this process offers, or would offer if another agent did
// not. Once made it stays for the life of the process.
type offer struct {
	resource string
	socket   string // begins its sockets
	roots    host.Roots
	file     *cdi.File
	unnamed  bool // the resource's name is none for CDI
	// inherited are devices of an earlier life's spec that containers still have.
	inherited []cdi.Device
	endpoint  *kubelet.Endpoint
	family    *nodelock.Kept // of all offers, nil for none
	lock      *nodelock.Kept // of the resource
	fresh     bool           // one of the two was taken when they were looked at last
	contest   contest

	// base are the devices as declared; devices are those that were announced, with
	// what else speaks against them.
	base    []declare.Device
	devices []declare.Device
	byID    map[string]*declare.Device

	announced bool
	trouble   []finding.Finding // with the offer as a whole
	failed    error             // why lock and spec are not as they should be
	retry     time.Time         // when to try again
	cancel    context.CancelFunc
	done      chan struct{}
}

func (a *Agent) newOffer(name declare.Name) *offer {
	o := &offer{
		resource: name.Resource, socket: name.Socket, roots: a.prog.Roots,
		family: a.family, lock: nodelock.NewKept(a.prog.Roots.CDI, name.Resource, a.holder()),
		file:    cdi.NewFile(a.prog.Roots.CDI, a.prog.Specs, name.Resource),
		unnamed: cdi.Kind(name.Resource) != nil,
	}
	if a.prog.Reload != nil {
		o.inherited = o.file.Read()
	}
	o.endpoint = kubelet.NewEndpoint(kubelet.Config{
		Resource:     name.Resource,
		Dir:          a.prog.Roots.DevicePlugins,
		SocketPrefix: name.Socket,
		Allocate: func(ctx context.Context, ids []string) (kubelet.Answer, error) {
			return a.allocate(ctx, o, ids)
		},
		Prefer:  func(available, must []string, size int) []string { return a.prefer(o, available, must, size) },
		Changed: a.lookout.Poke,
		Log:     a.log,
	})
	return o
}

// knows says whether an ID was ever announced here.
func (o *offer) knows(id string) bool { return o.byID[id] != nil }

// resolve makes the declared devices resolvable, before they are announced. The order is the
// point: nothing is announced healthy before the CDI spec that resolves it is on disk. It
// reports false when another agent has what the offer needs.
func (o *offer) resolve(devices []declare.Device, now time.Time) bool {
	err := o.write(devices, now)
	o.trouble = nil
	if errors.Is(err, nodelock.ErrHeld) {
		o.trouble = []finding.Finding{finding.New(finding.HeldElsewhere(), "", finding.Evidence{Path: err.Error()}).For(o.resource)}
		return false
	}
	if err != nil {
		o.trouble = []finding.Finding{finding.New(finding.SpecUnwritten(), "", finding.Evidence{Path: err.Error()}).For(o.resource)}
	}
	return true
}

// announce tells kubelet of the devices, with what other owners' specs say against them.
func (o *offer) announce(devices []declare.Device, foreign []cdi.Foreign) {
	o.base = devices
	o.set(devices, o.trouble, objections(o.resource, devices, foreign))
	o.endpoint.Announce(o.list())
	o.announced = true
}

// write takes the locks and brings the CDI spec up to date. What failed is not tried
// again at once: a failed attempt makes and removes a file, which is an event, which is
// a reason to look again.
func (o *offer) write(devices []declare.Device, now time.Time) error {
	if o.failed != nil && now.Before(o.retry) {
		return o.failed
	}
	o.failed = o.hold()
	if o.failed == nil {
		_, o.failed = o.file.Sync(o.resolvable(devices))
	}
	o.retry = now.Add(lockRetry)
	return o.failed
}

// hold takes the node's locks that the offer needs: that of all offers, then the resource's.
func (o *offer) hold() error {
	joined, err := o.family.Take()
	if err != nil {
		return err
	}
	taken, err := o.lock.Take()
	o.fresh = joined || taken
	if taken && o.cancel == nil { // else the sockets are our own
		err = errors.Join(err, leftovers(o.file, o.roots.DevicePlugins, o.socket))
	}
	return err
}

// leftovers removes what an earlier life left behind when it was killed. The caller holds
// the resource's lock, so nobody else uses any of it.
func leftovers(file *cdi.File, plugins, socket string) error {
	return errors.Join(file.Sweep(), kubelet.Sweep(plugins, socket))
}

// set files the devices with everything that speaks against them.
func (o *offer) set(devices []declare.Device, all []finding.Finding, by map[string][]finding.Finding) {
	o.devices = slices.Clone(devices)
	o.byID = make(map[string]*declare.Device, len(devices))
	for i := range o.devices {
		d := &o.devices[i]
		d.Faults = slices.Concat(d.Faults, all, by[d.ID])
		o.byID[d.ID] = d
	}
}

// list renders the devices for kubelet.
func (o *offer) list() []kubelet.Device {
	l := make([]kubelet.Device, 0, len(o.devices))
	for i := range o.devices {
		d := &o.devices[i]
		numa := d.Function.NUMA
		if d.NoTopology {
			numa = host.NoNode
		}
		l = append(l, kubelet.Device{ID: d.ID, Healthy: d.Healthy(), NUMA: int(numa)})
	}
	return l
}

// running says whether the resource is being offered to kubelet.
func (o *offer) running() bool { return o.cancel != nil }

// start runs the endpoint, if it does not run.
func (o *offer) start(ctx context.Context) {
	if o.cancel != nil {
		return
	}
	ctx, o.cancel = context.WithCancel(ctx)
	o.done = make(chan struct{})
	go func() {
		defer close(o.done)
		o.endpoint.Run(ctx)
	}()
}

// stop ends the endpoint and gives the lock up. The CDI spec stays.
func (o *offer) stop() error {
	if o.cancel != nil {
		o.cancel()
		<-o.done
		o.cancel = nil
	}
	return o.lock.Release()
}

// resolvable are the devices that a CDI spec may name: those that are there and have nodes. A
// device that must not be handed out is among them, since a container that holds it may be
// started again.
func (o *offer) resolvable(devices []declare.Device) []cdi.Device {
	var all []cdi.Device
	for i := range devices {
		if d := &devices[i]; o.named(d) {
			all = append(all, resolved(d))
		}
	}
	for _, d := range o.inherited {
		if !slices.ContainsFunc(all, func(own cdi.Device) bool { return own.Name == d.Name }) {
			all = append(all, d)
		}
	}
	return all
}

// named says whether a device has a CDI name.
func (o *offer) named(d *declare.Device) bool { return d.Present && len(d.Nodes) > 0 && !o.unnamed }

// resolved is a device as the CDI spec has it.
func resolved(d *declare.Device) cdi.Device {
	dev := cdi.Device{Name: d.ID, Nodes: make([]cdi.Node, 0, len(d.Nodes))}
	for _, n := range d.Nodes {
		dev.Nodes = append(dev.Nodes, cdi.Node{Path: n.Path, Host: n.Host, Permissions: n.Permissions})
	}
	return dev
}
