package agent

import (
	"errors"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/nodelock"
)

// sweep removes the CDI spec and the sockets of an earlier life for which there is no
// device any more: a spec must not name what is absent. It is done once, and again when
// somebody puts a spec there. Another agent that holds the resource's lock does that
// itself.
func (a *Agent) sweep() {
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
			_, err = file.Sync(nil)
			err = errors.Join(err, leftovers(file, a.prog.Roots.DevicePlugins, name.Socket), lock.Release())
		}
		a.report.once("end of an earlier life of "+name.Resource, err)
		a.swept[name.Resource] = err == nil
		if err == nil && found {
			a.log.Info("removed the CDI spec of an earlier life, since no device is there", "resource", name.Resource)
		}
	}
}

// sweepOrphans removes the CDI specs of resources that the rules of an earlier life had. A
// program whose rules never change has none. That of a resource that another agent offers by
// now is its business.
func (a *Agent) sweepOrphans() {
	if a.prog.Reload == nil {
		return
	}
	var resources []string
	for _, n := range a.names(a.rules) {
		resources = append(resources, n.Resource)
	}
	orphans, err := cdi.Orphans(a.prog.Roots.CDI, a.prog.Specs, resources)
	errs := []error{err}
	for _, o := range orphans {
		if err := a.sweepOrphan(o); err != nil {
			errs = append(errs, err)
		}
	}
	a.report.once("end of resources of an earlier life", errors.Join(errs...))
}

func (a *Agent) sweepOrphan(o cdi.Orphan) error {
	if o.Kind == "" { // torn: there is no telling whose lock it is, and it resolves nothing
		return o.Remove()
	}
	lock, err := nodelock.Take(a.prog.Roots.CDI, o.Kind, a.holder())
	if errors.Is(err, nodelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := errors.Join(o.Remove(), lock.Release()); err != nil {
		return err
	}
	a.log.Info("removed the CDI spec of an earlier life, since its resource is not configured", "resource", o.Kind)
	return nil
}
