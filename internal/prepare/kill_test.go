package prepare_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/claim"
)

// killedVariable has the directory of the node on which a child process prepares and unprepares.
const killedVariable = "PREPARE_KILLED"

// rounds are how often a child is killed.
const rounds = 500

// TestKill kills the driver at every one of its writes, again and again: a child prepares and
// unprepares claims, and is killed when the kernel has told of its n-th change to one of the
// directories that it writes to, n going round. After each kill nothing on disk contradicts
// itself, and the calls made again end as if nothing had happened.
func TestKill(t *testing.T) {
	if dir := os.Getenv(killedVariable); dir != "" {
		victim(t, dir)
		return
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t, "hgx-h100")
	must(t, os.MkdirAll(r.roots.CDI, 0o755))
	killed := map[int]bool{}
	for round := range rounds {
		after := round%41 + 1
		if kill(t, r, after, random) {
			killed[after] = true
		}
		check(t, r, round)
		if t.Failed() {
			t.Fatalf("seed %d, round %d, killed after %d changes", seed, round, after)
		}
	}
	if len(killed) < 20 {
		t.Errorf("killed at %d different changes only", len(killed))
	}
}

// victim prepares and unprepares two claims that want the same device, over and over, until it is
// killed.
func victim(t *testing.T, dir string) {
	r := open(t, dir)
	first, second := r.claim("u1", deviceName(gpuA), deviceName(gpuB)), r.claim("u2", deviceName(gpuB), deviceName(gpuC))
	fmt.Println("begun")
	for {
		r.reconcile()
		// What the one before has left may be in the way of either.
		for _, c := range []string{"u1", "u2"} {
			must(t, r.Unprepare(t.Context(), c))
		}
		r.prepared(first)
		r.refusedFor(second, "u1")
		must(t, r.Unprepare(t.Context(), "u1"))
		r.prepared(second)
		must(t, r.Unprepare(t.Context(), "u2"))
	}
}

// kill starts a child and kills it after so many changes. It says whether it was killed in time.
func kill(t *testing.T, r *rig, after int, random *rand.Rand) bool {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	must(t, err)
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close()
	for _, dir := range []string{r.roots.CDI, filepath.Join(r.roots.Run, "claims")} {
		_, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MODIFY|unix.IN_CLOSE_WRITE|unix.IN_MOVE|unix.IN_DELETE|unix.IN_ATTRIB)
		must(t, err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestKill$", "-test.v")
	cmd.Env = append(os.Environ(), killedVariable+"="+r.dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	said := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(bufio.NewReader(out)) // ends with the child
		said <- string(all)
	}()
	buffer := make([]byte, unix.SizeofInotifyEvent+unix.NAME_MAX+1)
	for range after {
		if _, err := events.Read(buffer); err != nil {
			t.Fatal(err)
		}
	}
	for range random.IntN(3) * 1000 { // a little later, now and then
		_ = strconv.Itoa(after)
	}
	must(t, cmd.Process.Kill())
	text := <-said
	err = cmd.Wait()
	if cmd.ProcessState.Exited() {
		t.Fatalf("the child ended by itself: %v: %s", err, text)
	}
	return true
}

// check holds what is on disk against itself, and then has the next process go on.
func check(t *testing.T, r *rig, round int) {
	t.Helper()
	r.restart("boot-1")
	records, damaged, err := r.config.Records.List()
	must(t, err)
	if len(damaged) > 0 {
		t.Errorf("damaged %+v", damaged)
	}
	holders := map[string]string{}
	known := map[string]bool{}
	for _, record := range records {
		known[record.UID] = true
		for _, d := range record.Devices {
			for _, a := range d.Group {
				if other, held := holders[a]; held {
					t.Errorf("%s is of %s and %s", a, other, record.UID)
				}
				holders[a] = record.UID
			}
		}
		if record.State == claim.Prepared {
			if got := len(r.spec(record.UID)); got != len(record.Devices) {
				t.Errorf("the spec of %s, which is prepared, names %d devices", record.UID, got)
			}
		}
	}
	for _, uid := range []string{"u1", "u2"} {
		if len(r.spec(uid)) > 0 && !known[uid] {
			t.Errorf("there is a spec of %s, and no record", uid)
		}
	}
	goOn(t, r, round)
}

// goOn makes the calls again that may have been cut short.
func goOn(t *testing.T, r *rig, round int) {
	t.Helper()
	r.reconcile()
	for _, uid := range []string{"u1", "u2"} {
		must(t, r.Unprepare(t.Context(), uid))
	}
	c := r.claim("u"+strconv.Itoa(1+round%2), deviceName(gpuA), deviceName(gpuB), deviceName(gpuC))
	r.prepared(c)
	must(t, r.Unprepare(t.Context(), string(c.UID)))
	entries, err := os.ReadDir(r.roots.CDI)
	must(t, err)
	for _, e := range entries {
		if strings.Contains(e.Name(), "kata.dra.") {
			t.Errorf("%s is left", e.Name())
		}
	}
	entries, err = os.ReadDir(filepath.Join(r.roots.Run, "claims"))
	must(t, err)
	left := slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return e.Name() == "lock" || strings.Contains(e.Name(), ".released.")
	})
	if len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
