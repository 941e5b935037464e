package claim_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/claim"
)

const (
	uidA = "0b5c4a52-6f0e-4d0c-9a57-3d0a8a4c1f10" // that of the golden files
	uidB = "1c2d3e4f-0000-4000-8000-000000000001"
	uidC = "2c2d3e4f-0000-4000-8000-000000000002"
)

// scratch is a directory in memory, where a sync costs nothing.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "claim")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string) *claim.Store {
	t.Helper()
	s, err := claim.Open(dir)
	must(t, err)
	return s
}

func lock(t testing.TB, s *claim.Store) (unlock func()) {
	t.Helper()
	release, err := s.Lock(t.Context())
	must(t, err)
	return func() {
		t.Helper()
		must(t, release())
	}
}

// locked is a new store that holds its lock until the test ends.
func locked(t testing.TB) (*claim.Store, string) {
	t.Helper()
	dir := scratch(t)
	s := open(t, dir)
	t.Cleanup(lock(t, s))
	return s, dir
}

var start = time.Date(2026, 11, 30, 14, 42, 15, 123456789, time.UTC)

// record is a claim's record, with as many devices as n says modulo 4, and n in it.
func record(uid string, n int) claim.Record {
	r := claim.Record{
		UID: uid, Namespace: "tenant", Name: fmt.Sprintf("claim-%d", n), Boot: "7c1f0a3e", State: claim.Prepared,
		Since: start, Changed: start.Add(time.Duration(n) * time.Second),
	}
	for i := range n % 4 {
		address := fmt.Sprintf("%04x:%02x:00.%d", n%0xffff, n%256, i)
		r.Devices = append(r.Devices, claim.Device{
			Pool: "node-a", Name: fmt.Sprintf("gpu-%d-%d", n, i), Address: address, Group: []string{address, "ffff:00:00.0"},
			Requests: []string{"gpu"}, CDI: []string{"vfio.katacontainers.io/claim=" + address}, Nodes: []string{"/dev/vfio/devices/vfio3"},
		})
	}
	return r
}

// sealed is a file with a body, as the format has it.
func sealed(body string) []byte {
	return fmt.Appendf(nil, "sha256:%x %d\n%s", sha256.Sum256([]byte(body)), len(body), body)
}

func golden(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	return data
}

func file(dir, uid string) string { return filepath.Join(dir, uid+".json") }

func place(t testing.TB, dir, uid string, data []byte) {
	t.Helper()
	must(t, os.WriteFile(file(dir, uid), data, 0o600))
}

func content(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return string(data)
}

func wantRecord(t testing.TB, s *claim.Store, want claim.Record) {
	t.Helper()
	got, found, err := s.Get(want.UID)
	if err != nil || !found {
		t.Fatalf("%s: found %v, %v", want.UID, found, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
}

func wantAbsent(t testing.TB, s *claim.Store, uid string) {
	t.Helper()
	if r, found, err := s.Get(uid); found || err != nil {
		t.Fatalf("found %v %+v, %v", found, r, err)
	}
}

// wantDamaged wants a file that cannot be trusted, said by Get and by List.
func wantDamaged(t testing.TB, s *claim.Store, uid string) claim.Damaged {
	t.Helper()
	r, found, err := s.Get(uid)
	var damaged *claim.DamagedError
	if found || !errors.As(err, &damaged) || damaged.UID != uid || damaged.Err == nil || !errors.Is(err, damaged.Err) {
		t.Fatalf("found %v %+v, %v", found, r, err)
	}
	_, all, err := s.List()
	must(t, err)
	for _, d := range all {
		if d.UID == uid && d.Path == damaged.Path && d.Newer == damaged.Newer && d.Err.Error() == damaged.Err.Error() && slices.Equal(d.Group, damaged.Group) {
			return d
		}
	}
	t.Fatalf("%+v is not in %+v", damaged, all)
	return claim.Damaged{}
}

// names lists a directory, without the lock.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var all []string
	for _, e := range entries {
		if e.Name() != "lock" {
			all = append(all, e.Name())
		}
	}
	return all
}

func wantNames(t testing.TB, dir string, want ...string) {
	t.Helper()
	if got := names(t, dir); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Fatalf("%s has %v, want %v", dir, got, want)
	}
}
