package agent

import (
	"errors"
	"time"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/nodelock"
)

// sweep removes the CDI spec and the sockets of an earlier life for which there is no
// device any more: a spec must not name what is absent. It is done once, and again when
// somebody puts a spec there. Another agent that holds the resource's lock does that
// itself.
func (a *Agent) sweep(now time.Time) {
	for _, name := range a.rules.Names() {
		file := cdi.NewFile(a.prog.Roots.CDI, a.prog.Specs, name.Resource)
		o := a.find(name.Resource)
		if o != nil && (o.announced || len(o.trouble) > 0) || a.swept[name.Resource] && !file.Exists() {
			continue
		}
		found := file.Exists()
		lock, err := nodelock.Take(a.prog.Roots.CDI, name.Resource, a.holder())
		if errors.Is(err, nodelock.ErrHeld) {
			continue
		}
		if err == nil {
			_, err = file.Sync(a.left(file, name.Resource, now))
			err = errors.Join(err, leftovers(file, a.prog.Roots.DevicePlugins, name.Socket), lock.Release())
		}
		a.report.Once("end of an earlier life of "+name.Resource, err)
		a.swept[name.Resource] = err == nil
		if err == nil && found && !file.Exists() {
			a.log.Info("removed the CDI spec of an earlier life, since no device is there", "resource", name.Resource)
		}
	}
}

// left are the devices of a spec that have to stay in it although their resource has none.
// Where rules never change there are none.
func (a *Agent) left(file *cdi.File, resource string, now time.Time) []cdi.Device {
	if a.prog.Reload == nil {
		return nil
	}
	return a.inherited(resource, file.Read(), now)
}

// sweepOrphans removes the CDI specs of resources that the rules of an earlier life had, but
// for what containers have of them. A program whose rules never change has none. As long as
// the rules are not those that were meant, or nobody knows what containers have, nothing is
// removed. That of a resource that another agent offers by now is its business.
func (a *Agent) sweepOrphans(now time.Time) {
	if a.prog.Reload == nil || len(a.faulty) > 0 || a.unread != nil {
		return
	}
	var resources []string
	for _, n := range a.names(a.rules) {
		resources = append(resources, n.Resource)
	}
	orphans, err := cdi.Orphans(a.prog.Roots.CDI, a.prog.Specs, resources)
	errs := []error{err}
	for _, o := range orphans {
		errs = append(errs, a.sweepOrphan(o, now))
	}
	a.report.Once("end of resources of an earlier life", errors.Join(errs...))
}

// sweepOrphan takes the lock by the file's name, which is that of the spec: what is in a torn
// file cannot be trusted.
func (a *Agent) sweepOrphan(o cdi.Orphan, now time.Time) error {
	lock, err := nodelock.Take(a.prog.Roots.CDI, o.Name, a.holder())
	if errors.Is(err, nodelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	for resource := range a.holders(now) {
		if cdi.FileName("", resource) == cdi.FileName("", o.Name) {
			file := cdi.NewFile(a.prog.Roots.CDI, a.prog.Specs, resource)
			_, err := file.Sync(a.inherited(resource, file.Read(), now))
			return errors.Join(err, lock.Release())
		}
	}
	if err := errors.Join(o.Remove(), lock.Release()); err != nil {
		return err
	}
	a.log.Info("removed the CDI spec of an earlier life, since its resource is not configured", "file", o.Path)
	return nil
}
