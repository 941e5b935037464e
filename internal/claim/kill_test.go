package claim_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/claim"
)

// step is what the child of TestKill does in a step. It can be repeated.
func step(s *claim.Store, seed uint64, n int) error {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	uid := []string{uidA, uidB, uidC}[r.IntN(3)]
	if r.IntN(3) == 0 {
		return s.Remove(uid, start.Add(time.Duration(n)*time.Second))
	}
	return s.Put(record(uid, n))
}

// life is the child: it does one step after another, and says so behind each.
func life(t *testing.T, dir string) {
	seed, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64)
	must(t, err)
	from, err := strconv.Atoi(os.Getenv("CLAIMS_FROM"))
	must(t, err)
	s := open(t, dir)
	for n := from; ; n++ {
		unlock := lock(t, s)
		must(t, step(s, seed, n))
		if _, err := fmt.Println(n); err != nil {
			return // nobody listens any more
		}
		unlock()
	}
}

// TestKill kills a process at any moment of its work, 200 times. Afterwards all is as after
// the last step that it had finished or as after the next one; the lock is free, and a new
// process goes on. SEED repeats the steps, but not the moments.
func TestKill(t *testing.T) {
	if dir := os.Getenv("CLAIMS_IN"); dir != "" {
		life(t, dir)
		return
	}
	seed := randomSeed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	dir, spared := scratch(t), scratch(t)
	s, model := open(t, dir), open(t, spared) // another store, whose writer is not killed
	defer lock(t, model)()
	next, unsaid, leftovers := 0, 0, 0
	for kill := range 200 {
		from := next
		cmd, out := child(t, dir, "SEED="+strconv.FormatUint(seed, 10), "CLAIMS_FROM="+strconv.Itoa(from))
		for range 1 + r.IntN(20) {
			_, err := out.ReadString('\n')
			must(t, err)
			if _, damaged, err := s.List(); err != nil || len(damaged) > 0 {
				t.Fatalf("beside the writer: %v, %v", damaged, err)
			}
			next++
		}
		must(t, cmd.Process.Kill())
		rest, err := io.ReadAll(out)
		must(t, err)
		_ = cmd.Wait() // it says that the child was killed
		next += strings.Count(string(rest), "\n")

		if strings.HasPrefix(names(t, dir)[0], ".") {
			leftovers++
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		unlock, err := s.Lock(ctx)
		must(t, err)
		must(t, unlock())
		cancel()
		if strings.HasPrefix(names(t, dir)[0], ".") {
			t.Fatalf("kill %d left %v", kill, names(t, dir))
		}
		for n := from; n < next; n++ {
			must(t, step(model, seed, n))
		}
		before := slots(t, model)
		must(t, step(model, seed, next))
		after := slots(t, model)
		for uid, got := range slots(t, s) {
			if !cmp.Equal(got, before[uid]) {
				unsaid++
				if diff := cmp.Diff(after[uid], got); diff != "" {
					t.Fatalf("kill %d, step %d, claim %s: %s", kill, next, uid, diff)
				}
			}
		}
	}
	t.Logf("%d steps; %d were done and not said, %d left a temporary file", next, unsaid, leftovers)
}

// slot is what a store says of one claim.
type slot struct {
	Found    bool
	Record   claim.Record
	Released time.Time
}

func slots(t *testing.T, s *claim.Store) map[string]slot {
	t.Helper()
	all := map[string]slot{}
	for _, uid := range []string{uidA, uidB, uidC} {
		r, found, err := s.Get(uid)
		must(t, err)
		released, _, err := s.Released(uid)
		must(t, err)
		all[uid] = slot{found, r, released}
	}
	return all
}
