package nodelock

// Kept is a lock that is kept for as long as something is offered. nil is one that nobody needs.
type Kept struct {
	dir, name, holder string
	take              func(dir, resource, holder string) (*Lock, error)
	lock              *Lock
}

// NewKept is a lock that its holder has alone. It is not taken yet.
func NewKept(dir, resource, holder string) *Kept {
	return &Kept{dir: dir, name: resource, holder: holder, take: Take}
}

// NewKeptShared is one that is shared with others who share it.
func NewKeptShared(dir, resource, holder string) *Kept {
	return &Kept{dir: dir, name: resource, holder: holder, take: TakeShared}
}

// Take takes the lock, and takes it again when its file was removed from the directory. It says
// whether that was now: until then it may have been another agent's.
func (k *Kept) Take() (fresh bool, err error) {
	if k == nil || k.Held() {
		return false, nil
	}
	lock, err := k.take(k.dir, k.name, k.holder)
	if err != nil {
		return false, err
	}
	if k.lock != nil {
		err = k.lock.Release()
	}
	k.lock = lock
	return true, err
}

// Taken says whether there is a lock to release.
func (k *Kept) Taken() bool { return k != nil && k.lock != nil }

// Held says whether the lock is still the node's.
func (k *Kept) Held() bool { return k.Taken() && k.lock.Held() }

// Release gives the lock up, if it was taken.
func (k *Kept) Release() error {
	if !k.Taken() {
		return nil
	}
	lock := k.lock
	k.lock = nil
	return lock.Release()
}
