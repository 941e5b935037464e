package claim_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/claim"
)

func randomSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(t, err)
	}
	t.Logf("SEED=%d", seed)
	return seed
}

// model is what a store has to say.
type model struct {
	dir     string
	whole   map[string]claim.Record
	damaged map[string]bool // true for newer
	aside   map[string]int
	stones  map[string]time.Time
}

// TestModel does one thing after another with a store, and damages files in between. After
// each it is as a model of it. SEED repeats a run.
func TestModel(t *testing.T) {
	r := rand.New(rand.NewPCG(randomSeed(t), 0))
	m := &model{scratch(t), map[string]claim.Record{}, map[string]bool{}, map[string]int{}, map[string]time.Time{}}
	s := open(t, m.dir)
	unlock := lock(t, s)
	var story []string
	seen := map[string]int{}
	for step := range 300 {
		uid := []string{uidA, uidB, uidC, "x"}[r.IntN(4)]
		var did string
		var got, want error
		switch n := r.IntN(20); {
		case n < 6 && m.aside[uid] <= 3:
			did, got, want = "put", s.Put(record(uid, step)), m.put(record(uid, step))
		case n < 9:
			at := start.Add(time.Duration(step+r.IntN(50)) * time.Second)
			did, got, want = "remove", s.Remove(uid, at), m.remove(uid, at)
		case n < 11:
			did, got, want = "quarantine", s.Quarantine(uid), m.quarantine(uid)
		case n < 12 || m.aside[uid] > 3: // there are never many, and each is read each time
			did, got = "discard", s.Discard(uid)
			delete(m.aside, uid)
		case n < 13:
			before := start.Add(time.Duration(step-r.IntN(50)) * time.Second)
			did, got = "forget", s.Forget(before)
			maps.DeleteFunc(m.stones, func(_ string, at time.Time) bool { return at.Before(before) })
		case n < 18:
			did = "damage: " + m.damage(t, r, uid)
		default:
			did = "another process"
			must(t, os.WriteFile(filepath.Join(m.dir, "."+uid+".json"+strconv.Itoa(step)), []byte("half a rec"), 0o600))
			unlock()
			s = open(t, m.dir)
			unlock = lock(t, s)
		}
		story = append(story, fmt.Sprintf("%d: %s %s: %v", step, did, uid, got))
		seen[did]++
		if (got == nil) != (want == nil) || errors.Is(want, fs.ErrNotExist) && !errors.Is(got, fs.ErrNotExist) {
			t.Fatalf("%s\nwant error %v", strings.Join(story[max(0, step-10):], "\n"), want)
		}
		if damaged := new(claim.DamagedError); errors.Is(want, errDamaged) != errors.As(got, &damaged) {
			t.Fatalf("%s\nwant error %v", strings.Join(story[max(0, step-10):], "\n"), want)
		}
		if diff := m.compare(t, s); diff != "" {
			t.Fatalf("%s\n%s", strings.Join(story[max(0, step-10):], "\n"), diff)
		}
	}
	unlock()
	if len(seen) != 6+9 {
		t.Errorf("not everything happened: %v", seen)
	}
}

var errDamaged = errors.New("damaged")

func (m *model) put(r claim.Record) error {
	if _, bad := m.damaged[r.UID]; bad {
		return errDamaged
	}
	m.whole[r.UID] = r
	return nil
}

func (m *model) remove(uid string, at time.Time) error {
	if _, bad := m.damaged[uid]; bad {
		return errDamaged
	}
	delete(m.whole, uid)
	if at.After(m.stones[uid]) {
		m.stones[uid] = at
	}
	return nil
}

func (m *model) quarantine(uid string) error {
	newer, bad := m.damaged[uid]
	_, whole := m.whole[uid]
	switch {
	case whole:
		return errors.New("whole")
	case newer:
		return errDamaged
	case bad:
		m.aside[uid]++
		delete(m.damaged, uid)
	case m.aside[uid] == 0:
		return fs.ErrNotExist
	}
	return nil
}

// damage replaces a claim's file with something else.
func (m *model) damage(t *testing.T, r *rand.Rand, uid string) string {
	t.Helper()
	path := file(m.dir, uid)
	must(t, os.RemoveAll(path))
	delete(m.whole, uid)
	m.damaged[uid] = false
	data := golden(t, "v1.json")
	_, body, _ := strings.Cut(string(data), "\n")
	write := func(data []byte) error { return os.WriteFile(path, data, 0o600) }
	var what string
	var err error
	switch r.IntN(9) {
	case 0:
		what, err = "cut", write(data[:r.IntN(len(data))])
	case 1:
		data[r.IntN(len(data))] ^= 1 << r.IntN(8)
		what, err = "bit", write(data)
	case 2:
		what, err = "link", os.Symlink(filepath.Join("..", "..", "etc", "passwd"), path)
	case 3:
		what, err = "FIFO", unix.Mkfifo(path, 0o600)
	case 4:
		what, err = "directory", os.Mkdir(path, 0o700)
	case 5:
		m.damaged[uid] = true
		what, err = "newer", write(golden(t, "v2.json"))
	case 6:
		what, err = "another claim's", write(sealed(strings.ReplaceAll(body, uidA, "y")))
	case 7:
		what, err = "large", write(make([]byte, 1<<20+1))
	default: // a person removes the file
		delete(m.damaged, uid)
		what = "none"
	}
	must(t, err)
	return what
}

// compare says how a store differs from the model.
func (m *model) compare(t *testing.T, s *claim.Store) string {
	t.Helper()
	records, damaged, err := s.List()
	must(t, err)
	want := slices.SortedFunc(maps.Values(m.whole), func(a, b claim.Record) int { return strings.Compare(a.UID, b.UID) })
	if diff := cmp.Diff(want, records); diff != "" {
		return diff
	}
	bad, aside := map[string]bool{}, map[string]int{}
	for _, d := range damaged {
		if d.Quarantined {
			aside[d.UID]++
		} else {
			bad[d.UID] = d.Newer
		}
	}
	if diff := cmp.Diff(m.damaged, bad) + cmp.Diff(m.aside, aside); diff != "" {
		return diff
	}
	for _, uid := range []string{uidA, uidB, uidC, "x"} {
		r, found, err := s.Get(uid)
		_, isBad := m.damaged[uid]
		if _, there := m.whole[uid]; found != there || (err != nil) != isBad || found && !cmp.Equal(r, m.whole[uid]) {
			return fmt.Sprintf("get %s: %v, %v", uid, found, err)
		}
		at, ok, err := s.Released(uid)
		if stone, there := m.stones[uid]; ok != there || !at.Equal(stone) || err != nil {
			return fmt.Sprintf("released %s: %v %v, %v, want %v", uid, at, ok, err, stone)
		}
	}
	for _, name := range names(t, m.dir) {
		if strings.HasPrefix(name, ".") {
			return "left " + name
		}
	}
	return ""
}
