package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"kata-device-plugin/internal/manifest"
	"kata-device-plugin/internal/selector"
)

// Matching is what selectors make of the devices that are published. A device is not looked at before
// somebody comes to it: that takes longer than anything else that is done with a claim.
type Matching struct {
	of  *matcher
	all []asked
}

// asked is a selector with what it has answered so far.
type asked struct {
	selector.Expression
	*answers
}

// answers are those of one text, wherever it stands, by device.
type answers struct{ given []answer }

type answer byte

const (
	unasked answer = iota
	takes
	refuses
	fails // it asks for what the device lacks
)

// matcher evaluates selectors. Claims of one sort have the same ones.
type matcher struct {
	*selector.Reader
	devices []Published
	seen    []selector.Device // what selectors see of the devices
	unread  error             // of a device it is not known what it has
	known   map[string]*answers
	size    int // how many answers are known
	made    int // how many evaluations have been
	limit   int // how many there may be
	gaveUp  bool
}

// mostEvaluations bounds the time that a run takes: one takes some microseconds, and where each claim has a
// text of its own that takes few devices, each asks about all devices of the cluster.
const mostEvaluations = 1 << 20

// keptAnswers bounds what is remembered, for each evaluation that may be made: devices that are passed over take room.
const keptAnswers = 16

// errTooMany is why it is not known what selectors take, although they could be asked.
var errTooMany = errors.New("there are too many selectors and devices to ask all of them")

// Matching says which published devices the selectors of some lists take. The error is why that is
// not known: an expression that is not understood, or a device that cannot be read.
func (w *World) Matching(lists ...manifest.Value) (Matching, error) {
	found, err := w.evaluator().match(lists)
	if m := found.of; err == nil && m.made >= m.limit && !found.known() {
		m.gaveUp = true
		return Matching{}, errTooMany
	}
	return found, err
}

// Matching is what the checks ask, without a bound: who explains one object asks about few selectors.
func (v *View) Matching(lists ...manifest.Value) (Matching, error) { return v.evaluator().match(lists) }

// gaveUp says whether selectors were not asked since somebody last wanted to know, since there are too many.
func (w *World) gaveUp() bool {
	if w.matcher == nil {
		return false
	}
	was := w.matcher.gaveUp
	w.matcher.gaveUp = false
	return was
}

// known says whether nothing of it is left to ask.
func (m Matching) known() bool {
	return !slices.ContainsFunc(m.all, func(s asked) bool {
		return len(s.given) < len(m.of.devices) || slices.Contains(s.given, unasked)
	})
}

// evaluator is the matcher of the set, made when somebody asks.
func (w *World) evaluator() *matcher {
	if w.matcher == nil {
		w.matcher = newMatcher(w.published, cmp.Or(w.o.Evaluations, mostEvaluations))
	}
	return w.matcher
}

func newMatcher(devices []Published, limit int) *matcher {
	m := &matcher{Reader: selector.NewReader(), devices: devices, known: map[string]*answers{}, limit: limit}
	for _, p := range devices {
		var d selector.Device
		text, err := json.Marshal(Plain(p.Device))
		if err == nil {
			d, err = selector.NewDevice(p.Driver, text)
		}
		if err != nil && m.unread == nil {
			m.unread = fmt.Errorf("%s: read device %s: %w", p.Device.Place(), p.DeviceName, err)
		}
		m.seen = append(m.seen, d)
	}
	return m
}

func (m *matcher) match(lists []manifest.Value) (Matching, error) {
	expressions, err := m.Read(lists...)
	if err != nil {
		return Matching{}, err
	}
	if m.unread != nil {
		return Matching{}, m.unread
	}
	found := Matching{of: m}
	for _, e := range expressions {
		text := e.At.Text()
		if m.known[text] == nil {
			m.known[text] = &answers{}
		}
		found.all = append(found.all, asked{e, m.known[text]})
	}
	return found, nil
}

// Taken are the devices that all selectors take.
func (m Matching) Taken() iter.Seq[Published] {
	return func(yield func(Published) bool) {
		for i, p := range m.of.devices {
			if last, _ := m.answer(i); last == takes && !yield(p) {
				return
			}
		}
	}
}

// Any says whether there is one that they take.
func (m Matching) Any() bool {
	for range m.Taken() {
		return true
	}
	return false
}

// Failed is the first selector that asks for what a device lacks: the scheduler gives up if it comes so
// far as that device.
func (m Matching) Failed() error {
	for i, p := range m.of.devices {
		last, s := m.answer(i)
		if last != fails {
			continue
		}
		_, err := s.Takes(context.Background(), m.of.seen[i])
		return fmt.Errorf("%s: device %s: %w", s.At.Place(), p.DeviceName, err)
	}
	return nil
}

// answer is what the selectors say to a device, and the one that said it: the first that does not take it.
func (m Matching) answer(device int) (answer, asked) {
	for _, s := range m.all {
		if a := m.of.ask(s, device); a != takes {
			return a, s
		}
	}
	return takes, asked{}
}

// ask asks a selector about a device, once as far as that can be remembered.
func (m *matcher) ask(s asked, device int) answer {
	if more := device + 1 - len(s.given); more > 0 {
		if m.size += more; m.size > keptAnswers*m.limit {
			m.size = more
			clear(m.known)
		}
		s.given = append(s.given, make([]answer, more)...)
	}
	if s.given[device] != unasked {
		return s.given[device]
	}
	m.made++
	a := refuses
	switch taken, err := s.Takes(context.Background(), m.seen[device]); {
	case err != nil:
		a = fails
	case taken:
		a = takes
	}
	s.given[device] = a
	return a
}
