package nic

import "kata-device-plugin/internal/finding"

// answer is what the facts say to a selector. What cannot be seen now is neither yes nor no.
type answer uint8

const (
	no answer = iota
	yes
	unseen
)

func is(b bool) answer {
	if b {
		return yes
	}
	return no
}

// verdict is the answer to a selector, or to all selectors of an object.
type verdict struct {
	answer answer
	// guess is what else the facts point to when the answer cannot be seen: the PF of a
	// VF. It counts only where nobody remembers better.
	guess answer
	// key is the selector that says no, or the first that cannot be answered, and fact
	// what there is instead.
	key  string
	fact finding.Evidence
}

// and joins the answers of selectors that all have to match.
func (v verdict) and(w verdict) verdict {
	switch {
	case v.answer == no || w.answer == yes:
		return v
	case w.answer == no || v.answer == yes:
		return w
	}
	switch { // both are unseen
	case v.guess == no:
	case w.guess == no:
		v.guess = no
	case w.guess == unseen:
		v.guess = unseen
	}
	return v
}
