package agent

import "kata-device-plugin/internal/nodelock"

// ownership is a lock of the node that is kept for as long as something is offered. nil is one
// that nobody needs.
type ownership struct {
	dir, name string
	holder    string // how we name ourselves in it
	lock      *nodelock.Lock
}

func (a *Agent) newOwnership(name string) *ownership {
	return &ownership{dir: a.prog.Roots.CDI, name: name, holder: a.holder()}
}

// take takes the lock, and takes it again when its file was removed from the CDI directory. It
// says whether that was now: until then it may have been another agent's.
func (o *ownership) take() (fresh bool, err error) {
	if o == nil || o.lock != nil && o.lock.Held() {
		return false, nil
	}
	lock, err := nodelock.Take(o.dir, o.name, o.holder)
	if err != nil {
		return false, err
	}
	if o.lock != nil {
		err = o.lock.Release()
	}
	o.lock = lock
	return true, err
}

// kept says whether there is a lock to release.
func (o *ownership) kept() bool { return o != nil && o.lock != nil }

// release gives the lock up.
func (o *ownership) release() error {
	if !o.kept() {
		return nil
	}
	lock := o.lock
	o.lock = nil
	return lock.Release()
}
