package placement

// Spread picks size units: those named in must, and others so that all of them are of as many
// owners as possible, and of those that have the most units left first. The owner of a unit is
// the last domain of its path. It is for units that are shares of something: a container that
// asks for eight wants eight network adapters, and not eighths of one.
//
// It is deterministic, and answers as well as it can, as Choose does.
func Spread(units []Unit, must []string, size int) []string {
	chosen := make([]string, 0, min(max(size, 0), len(units)+len(must)))
	taken := make(map[string]bool, len(must))
	for _, id := range must {
		if !taken[id] && len(chosen) < size {
			taken[id] = true
			chosen = append(chosen, id)
		}
	}
	var owners []*share
	byName := make(map[string]*share)
	seen := make(map[string]bool, len(units))
	for _, u := range units {
		if len(u.Path) == 0 || seen[u.ID] {
			continue
		}
		seen[u.ID] = true
		name := u.Path[len(u.Path)-1]
		o := byName[name]
		if o == nil {
			o = &share{}
			byName[name] = o
			owners = append(owners, o)
		}
		if taken[u.ID] {
			o.given++
		} else {
			o.free = append(o.free, u.ID)
		}
	}
	for len(chosen) < size {
		best := next(owners)
		if best == nil {
			break
		}
		chosen = append(chosen, best.free[0])
		best.free = best.free[1:]
		best.given++
	}
	return chosen
}

// share is what an owner has, and has given.
type share struct {
	given int
	free  []string
}

// next is the owner that has given least, among those the one with the most left, and among
// those the first; nil when none has any.
func next(owners []*share) *share {
	var best *share
	for _, o := range owners {
		if len(o.free) > 0 && (best == nil || o.given < best.given || o.given == best.given && len(o.free) > len(best.free)) {
			best = o
		}
	}
	return best
}
