package claim_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/claim"
)

func TestOpen(t *testing.T) {
	dir := filepath.Join(scratch(t), "var", "claims")
	for range 2 {
		s := open(t, dir)
		unlock := lock(t, s)
		must(t, s.Put(record(uidA, 1)))
		unlock()
		for path, want := range map[string]fs.FileMode{".": 0o700, "lock": 0o600, uidA + ".json": 0o600} {
			if info, err := os.Lstat(filepath.Join(dir, path)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info, err)
			}
		}
		must(t, os.Chmod(dir, 0o755)) // as kubelet makes it
	}
	link := filepath.Join(scratch(t), "link")
	must(t, os.Symlink(dir, link))
	wantRecord(t, open(t, link), record(uidA, 1))
	for _, bad := range []string{file(dir, uidA), filepath.Join(file(dir, uidA), "claims")} {
		if _, err := claim.Open(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%v", err)
		}
	}
}

func TestLife(t *testing.T) {
	s, dir := locked(t)
	other := open(t, dir) // of another process
	wantAbsent(t, s, uidA)
	r := record(uidA, 2)
	for _, state := range []claim.State{claim.Preparing, claim.Prepared, claim.Unpreparing} {
		r.State, r.Changed = state, r.Changed.Add(time.Second)
		must(t, s.Put(r))
		wantRecord(t, other, r)
	}
	if at, ok, err := s.Released(uidA); ok || err != nil {
		t.Errorf("released %v, %v", at, err)
	}
	must(t, s.Remove(uidA, start))
	wantAbsent(t, other, uidA)
	for _, at := range []time.Time{start.Add(time.Minute), start.Add(time.Second), start.Add(time.Minute)} {
		must(t, s.Remove(uidA, at)) // again, and with a clock that was set back
	}
	must(t, s.Remove(uidB, start.Add(time.Minute-1)))
	if at, ok, err := other.Released(uidA); !at.Equal(start.Add(time.Minute)) || !ok || err != nil {
		t.Errorf("released %v %v, %v", at, ok, err)
	}
	wantNames(t, dir, uidA+".released.20261130T144315.123456789Z", uidB+".released.20261130T144315.123456788Z")
	must(t, s.Forget(start.Add(time.Minute)))
	if _, ok, err := other.Released(uidA); !ok || err != nil {
		t.Errorf("forgotten too early: %v", err)
	}
	if _, ok, err := other.Released(uidB); ok || err != nil {
		t.Errorf("not forgotten: %v", err)
	}
	// A claim that was released can be prepared again, for another pod.
	must(t, s.Put(r))
	wantRecord(t, other, r)
	if err := s.Remove(uidA, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)); err == nil {
		t.Error("a time that cannot be written down")
	}
	wantRecord(t, other, r)
}

func TestQuarantine(t *testing.T) {
	s, dir := locked(t)
	if err := s.Quarantine(uidA); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing: %v", err)
	}
	must(t, s.Put(record(uidA, 1)))
	if err := s.Quarantine(uidA); err == nil {
		t.Error("a good record was moved")
	}
	must(t, s.Put(record(uidB, 1)))
	for n, text := range []string{"one 0000:0a:00.0", "two 0000:0b:00.0"} {
		place(t, dir, uidA, []byte(text))
		for _, err := range []error{s.Put(record(uidA, 1)), s.Remove(uidA, start)} {
			if damaged := new(claim.DamagedError); !errors.As(err, &damaged) || !slices.Equal(damaged.Group, []string{strings.Fields(text)[1]}) {
				t.Errorf("%v", err)
			}
		}
		for range 2 {
			must(t, s.Quarantine(uidA)) // it may be repeated
		}
		wantAbsent(t, s, uidA)
		records, damaged, err := s.List()
		if err != nil || len(records) != 1 || len(damaged) != n+1 {
			t.Fatalf("%v, %v, %v", records, damaged, err)
		}
		if d := damaged[n]; d.UID != uidA || !d.Quarantined || d.Err == nil || content(t, d.Path) != text || !slices.Equal(d.Group, []string{strings.Fields(text)[1]}) {
			t.Errorf("%+v", d)
		}
	}
	must(t, s.Put(record(uidA, 3)))
	must(t, s.Discard(uidB))
	wantNames(t, dir, uidA+".damaged.1", uidA+".damaged.2", uidA+".json", uidB+".json")
	must(t, s.Discard(uidA))
	must(t, s.Discard(uidA))
	wantNames(t, dir, uidA+".json", uidB+".json")
	wantRecord(t, s, record(uidA, 3))

	// A person put a good file aside.
	must(t, os.Rename(file(dir, uidA), filepath.Join(dir, uidA+".damaged.by-me")))
	_, damaged, err := s.List()
	if err != nil || len(damaged) != 1 || damaged[0].UID != uidA || !damaged[0].Quarantined || damaged[0].Err == nil || len(damaged[0].Group) != 4 {
		t.Errorf("%+v, %v", damaged, err)
	}
}

// TestStrange: what is no record of a claim is never followed, opened or waited for.
func TestStrange(t *testing.T) {
	s, dir := locked(t)
	whole := record(uidB, 2)
	must(t, s.Put(whole))
	path := file(dir, uidA)
	good := filepath.Join(dir, "good")
	must(t, os.WriteFile(good, golden(t, "v1.json"), 0o600))
	for name, lay := range map[string]func() error{
		"link":          func() error { return os.Symlink(good, path) },
		"dangling link": func() error { return os.Symlink("nowhere", path) },
		"FIFO":          func() error { return unix.Mkfifo(path, 0o600) },
		"directory":     func() error { return os.Mkdir(path, 0o700) },
		"huge": func() error {
			return errors.Join(os.WriteFile(path, golden(t, "v1.json"), 0o600), os.Truncate(path, 1<<40))
		},
		"other's": func() error { return os.Link(file(dir, uidB), path) },
	} {
		must(t, lay())
		if d := wantDamaged(t, s, uidA); d.Newer || d.Unread || (name == "huge" && len(d.Group) == 0) || (name == "link" && len(d.Group) > 0) {
			t.Errorf("%s: %+v", name, d)
		}
		if err := s.Put(record(uidA, 1)); err == nil {
			t.Errorf("%s: written over", name)
		}
		must(t, s.Quarantine(uidA))
		records, damaged, err := s.List()
		if err != nil || len(records) != 1 || len(damaged) != 1 || !damaged[0].Quarantined {
			t.Errorf("%s: %v, %v, %v", name, records, damaged, err)
		}
		must(t, s.Discard(uidA))
	}
	wantRecord(t, s, whole)
	if content(t, good) != string(golden(t, "v1.json")) {
		t.Error("the target of the link was changed")
	}
}

// TestNames: a claim cannot be named so that a file elsewhere is meant, and a file that is not
// named for a claim is reported, since nobody knows what it holds.
func TestNames(t *testing.T) {
	s, dir := locked(t)
	for _, uid := range []string{"", ".", "..", "../x", "a/b", "a.b", "a\x00b", "a\nb", "ü", strings.Repeat("a", 129)} {
		_, found, getErr := s.Get(uid)
		_, released, releasedErr := s.Released(uid)
		for name, err := range map[string]error{
			"get": getErr, "released": releasedErr, "put": s.Put(record(uid, 1)), "remove": s.Remove(uid, start),
			"quarantine": s.Quarantine(uid), "discard": s.Discard(uid),
		} {
			if err == nil || found || released || !strings.Contains(err.Error(), "UID") {
				t.Errorf("%s %q: %v", name, uid, err)
			}
		}
	}
	wantNames(t, dir)
	for _, uid := range []string{"a", "A_b-9", strings.Repeat("a", 128)} {
		must(t, s.Put(record(uid, 1)))
		wantRecord(t, s, record(uid, 1))
		must(t, s.Remove(uid, start))
	}
	must(t, s.Forget(start.Add(1)))
	wantNames(t, dir)
	place(t, dir, "copy of "+uidA, golden(t, "v1.json"))
	place(t, dir, "."+uidB, nil)
	for _, name := range []string{uidA + ".json~", uidA + ".json.bak", "README", ".x.json5", uidA + ".released.", uidA + ".released.1", "a b.damaged.1"} {
		must(t, os.WriteFile(filepath.Join(dir, name), golden(t, "v1.json"), 0o600))
	}
	before := names(t, dir)
	records, damaged, err := s.List()
	if err != nil || len(records) > 0 || len(damaged) != 2 {
		t.Fatalf("%v, %v, %v", records, damaged, err)
	}
	for i, name := range []string{"." + uidB, "copy of " + uidA} {
		d := damaged[i]
		if d.UID != "" || d.Path != file(dir, name) || !strings.Contains(d.Err.Error(), "UID") || (len(d.Group) == 3) != (i == 1) {
			t.Errorf("%+v", d)
		}
	}
	must(t, s.Forget(start.Add(time.Hour)))
	wantNames(t, dir, before...)
}

// TestSorted: by UID, where the names of the files are in another order.
func TestSorted(t *testing.T) {
	s, dir := locked(t)
	for _, uid := range []string{"a-b", "a", "a_", "B"} {
		must(t, s.Put(record(uid, 1)))
		place(t, dir, uid+"-x", nil)
	}
	records, damaged, err := s.List()
	must(t, err)
	var got []string
	for i := range records {
		got = append(got, records[i].UID)
	}
	for i := range damaged {
		got = append(got, damaged[i].UID)
	}
	if want := []string{"B", "a", "a-b", "a_", "B-x", "a-b-x", "a-x", "a_-x"}; !cmp.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

// TestGone: a directory that is not there says nothing about any claim.
func TestGone(t *testing.T) {
	s, dir := locked(t)
	must(t, s.Put(record(uidA, 1)))
	must(t, os.Rename(dir, dir+".away"))
	_, _, getErr := s.Get(uidA)
	_, _, listErr := s.List()
	_, _, releasedErr := s.Released(uidA)
	for name, err := range map[string]error{"get": getErr, "list": listErr, "released": releasedErr, "put": s.Put(record(uidB, 1))} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	must(t, os.Rename(dir+".away", dir))
	wantRecord(t, s, record(uidA, 1))
}

// cutVariable is set in the process that TestCut starts: a limit of the size of files is the whole
// process's, and the test runner writes files too.
const cutVariable = "CLAIMS_CUT"

// TestCut: a write that ends early, as on a full disk or at a quota, leaves the old record and
// nothing else.
func TestCut(t *testing.T) {
	if os.Getenv(cutVariable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCut$")
		cmd.Env = append(os.Environ(), cutVariable+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	s, dir := locked(t)
	must(t, s.Put(record(uidA, 3)))
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 100, Max: old.Max}))
	put, fresh, removed := s.Put(record(uidA, 1)), s.Put(record(uidB, 1)), s.Remove(uidC, start)
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &old))
	for _, err := range []error{put, fresh} {
		if !errors.Is(err, unix.EFBIG) || strings.Contains(err.Error(), ".json") {
			t.Errorf("%v", err)
		}
	}
	must(t, removed) // a release takes no room
	wantNames(t, dir, uidA+".json", uidC+".released.20261130T144215.123456789Z")
	wantRecord(t, s, record(uidA, 3))
	wantAbsent(t, s, uidB)
	must(t, s.Put(record(uidA, 1)))
	wantRecord(t, s, record(uidA, 1))
}

// skip ends a test that cannot run here, which in CI it has to.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("CI has to run this, but %s", why)
	}
	t.Skipf("SKIPPED: %s", why)
}

// TestFull is a disk that is really full, and then read-only.
func TestFull(t *testing.T) {
	dir := scratch(t)
	if err := unix.Mount("claims", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=700"); err != nil {
		skip(t, "no file system can be mounted: "+err.Error())
	}
	defer func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) }()
	s := open(t, dir)
	unlock := lock(t, s)
	must(t, s.Put(record(uidA, 3)))
	must(t, s.Put(record(uidB, 2)))
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := s.Put(record(uidA, 1)); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("put: %v", err)
	}
	wantRecord(t, s, record(uidA, 3))
	wantNames(t, dir, uidA+".json", uidB+".json", "filler")
	must(t, s.Remove(uidB, start))
	wantAbsent(t, s, uidB)
	unlock()
	must(t, unix.Mount("claims", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, "size=64k"))
	s = open(t, dir)
	wantRecord(t, s, record(uidA, 3))
	if records, damaged, err := s.List(); err != nil || len(records) != 1 || len(damaged) > 0 {
		t.Errorf("%v, %v, %v", records, damaged, err)
	}
	if _, err := s.Lock(t.Context()); !errors.Is(err, unix.EROFS) {
		t.Errorf("lock: %v", err)
	}
}
