package nodelock_test

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/nodelock"
)

var seed = flag.Uint64("seed", 0, "seed of the race; 0 takes the time")

const (
	racers   = 8      // processes; every other one shares
	attempts = 20_000 // of all together
	killed   = 100    // one racer is killed in each so many rounds
)

// What a racer says of a round, and what its place in the witness has.
const (
	lost   = '-'
	alone  = 'a'
	shared = 's'
	both   = '!' // it has the lock, and so has another of whom that must not be
	failed = '?'
)

// witness is memory that all racers share: who has the lock now. A racer enters what it has
// after it has got it, and strikes it out before it gives it up.
type witness [racers]struct {
	has    atomic.Int32
	doomed atomic.Int32 // it is being killed, and may have lost the lock with its entry left
}

func openWitness(t *testing.T, path string) *witness {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := int(unsafe.Sizeof(witness{}))
	if err := f.Truncate(int64(size)); err != nil {
		t.Fatal(err)
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(memory) })
	return (*witness)(unsafe.Pointer(&memory[0]))
}

// enter notes what a racer has got, and says whether it may have that. Of two that must not have
// the lock together at least one sees the other. That a racer is not doomed is asked first: if
// it is not, it lives, and its entry is true.
func (w *witness) enter(self int, has int32) int32 {
	w[self].has.Store(has)
	for i := range w {
		doomed := w[i].doomed.Load()
		other := w[i].has.Load()
		if i != self && doomed == 0 && other != 0 && (has == alone || other == alone) {
			return both
		}
	}
	return has
}

// What a racer is told.
const (
	giveUp = 'g' // what it has
	try    = 't' // to get the lock, and give up what it has before
)

// race is a racer's process: it does what it is told, and says what came of it.
func race(t *testing.T, dir string, self int) {
	w := openWitness(t, filepath.Join(dir, "witness"))
	start, say := os.NewFile(3, "start"), os.NewFile(4, "say")
	f, kind := take(nodelock.Take), int32(alone)
	if self%2 == 1 {
		f, kind = nodelock.TakeShared, shared
	}
	var l *nodelock.Lock
	for order := []byte{0}; ; {
		if _, err := start.Read(order); err != nil {
			return
		}
		if l != nil {
			w[self].has.Store(0)
			release(t, l)
			l = nil
		}
		verdict := int32(lost)
		if order[0] == try {
			var err error
			l, err = f(dir, resource, "racer "+strconv.Itoa(self))
			switch {
			case err == nil:
				verdict = w.enter(self, kind)
			case !errors.Is(err, nodelock.ErrHeld):
				os.Stderr.WriteString(err.Error() + "\n")
				verdict = failed
			}
		}
		if _, err := say.Write([]byte{byte(verdict)}); err != nil {
			return
		}
	}
}

// racer is such a process as its starter has it.
type racer struct {
	cmd   *exec.Cmd
	start *os.File
	said  *os.File
}

func startRacer(t *testing.T, dir string, self int) *racer {
	t.Helper()
	theirs1, start, err1 := os.Pipe()
	said, theirs2, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRace$")
	cmd.Env = append(os.Environ(), "RACE_IN="+dir, "RACE_AS="+strconv.Itoa(self))
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, []*os.File{theirs1, theirs2}
	if err := errors.Join(cmd.Start(), theirs1.Close(), theirs2.Close()); err != nil {
		t.Fatal(err)
	}
	return &racer{cmd: cmd, start: start, said: said}
}

// verdict waits for what a racer says; it is lost of one that has been killed.
func (r *racer) verdict() (byte, error) {
	b := []byte{lost}
	_, err := r.said.Read(b)
	return b[0], err
}

// end waits for the end of a racer that is to end, which may be by a signal.
func (r *racer) end() {
	r.start.Close()
	r.said.Close()
	_ = r.cmd.Wait()
}

// TestRace: processes that want the lock alone and processes that share it try to get it at the
// same time, some of them are killed meanwhile, and at no time have both kinds got it, or two
// of the first.
func TestRace(t *testing.T) {
	if dir := os.Getenv("RACE_IN"); dir != "" {
		self, err := strconv.Atoi(os.Getenv("RACE_AS"))
		if err != nil {
			t.Fatal(err)
		}
		race(t, dir, self)
		return
	}
	s := *seed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d: go test -run '^TestRace$' -args -seed=%d", s, s)
	g := &game{t: t, dir: t.TempDir(), rand: rand.New(rand.NewPCG(s, 1)), won: map[byte]int{}}
	g.witness = openWitness(t, filepath.Join(g.dir, "witness"))
	for i := range g.racers {
		g.racers[i] = startRacer(t, g.dir, i)
	}
	defer func() {
		for _, r := range g.racers {
			r.end()
		}
	}()
	for round := 0; g.tried < attempts && !t.Failed(); round++ {
		victim := -1
		if round%killed == killed-1 {
			victim = g.rand.IntN(racers)
		}
		g.round(victim)
	}
	t.Logf("%d attempts, taken alone %d times, shared %d times, %d killed", g.tried, g.won[alone], g.won[shared], g.killed)
	if g.won[alone] < attempts/100 || g.won[shared] < attempts/100 || g.killed < 10 {
		t.Error("that is too few to tell")
	}
}

// game is the whole of it.
type game struct {
	t       *testing.T
	dir     string
	rand    *rand.Rand
	witness *witness
	racers  [racers]*racer
	won     map[byte]int
	tried   int
	killed  int
}

// round lets all racers try once. The victim, if there is one, is killed at some time. Half of
// the rounds begin with the lock free: otherwise those who share would hardly ever lose it.
func (g *game) round(victim int) {
	g.t.Helper()
	if g.rand.IntN(2) == 0 {
		g.tell(giveUp, -1)
	}
	now := g.tell(try, victim)
	g.tried += now[lost] + now[alone] + now[shared]
	g.won[alone] += now[alone]
	g.won[shared] += now[shared]
	if now[alone] > 1 || now[alone] > 0 && now[shared] > 0 {
		g.t.Errorf("%d have it alone and %d shared", now[alone], now[shared])
	}
	if victim >= 0 {
		g.replace(victim)
	}
}

// tell gives an order to all racers, in any sequence, and counts what they say.
func (g *game) tell(order byte, victim int) map[byte]int {
	g.t.Helper()
	when := g.rand.IntN(racers)
	for n, i := range g.rand.Perm(racers) {
		if n == when && victim >= 0 {
			g.witness[victim].doomed.Store(1)
			if err := g.racers[victim].cmd.Process.Signal(syscall.SIGKILL); err != nil {
				g.t.Fatal(err)
			}
		}
		if _, err := g.racers[i].start.Write([]byte{order}); err != nil && i != victim {
			g.t.Fatalf("racer %d: %v", i, err)
		}
	}
	now := map[byte]int{}
	for i, r := range g.racers {
		said, err := r.verdict()
		if i == victim {
			continue
		}
		if err != nil || said == both || said == failed {
			g.t.Errorf("racer %d: %c, %v", i, said, err)
		}
		now[said]++
	}
	return now
}

// replace waits for the end of a racer that was killed, and starts another in its place.
func (g *game) replace(i int) {
	g.racers[i].end()
	if status, ok := g.racers[i].cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		g.t.Errorf("racer %d was not killed: %v", i, g.racers[i].cmd.ProcessState)
	}
	g.killed++
	g.witness[i].has.Store(0) // before it is said that the entry is true again
	g.witness[i].doomed.Store(0)
	g.racers[i] = startRacer(g.t, g.dir, i)
}
