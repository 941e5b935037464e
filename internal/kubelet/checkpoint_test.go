package kubelet

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, CheckpointName)
	c := NewCheckpoint(dir)
	read := func(content string) error {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return c.Read()
	}
	if err := c.Read(); err != nil {
		t.Errorf("without a file: %v", err)
	}
	if _, known := c.Healthy("nvidia.com/gpu"); known {
		t.Error("known without a file")
	}
	if c.Held() != nil {
		t.Error("something is held without a file")
	}
	// As kubelet 1.37 writes it: a container has devices of two NUMA nodes, and another pod one.
	err := read(`{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"nvidia.com/gpu","DeviceIDs":{"0":["0000:53:00.0"],"1":["0000:97:00.0"]},"AllocResp":"KgA="},` +
		`{"PodUID":"v","ContainerName":"c","ResourceName":"nvidia.com/gpu","DeviceIDs":{"-1":["0000:64:00.0"]},"AllocResp":""}],` +
		`"RegisteredDevices":{"nvidia.com/gpu":["b","a","b"],"other/x":null}},"Checksum":1234567890}`)
	if err != nil {
		t.Fatal(err)
	}
	if ids, known := c.Healthy("nvidia.com/gpu"); !known || !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("%v, %v", ids, known)
	}
	if ids, known := c.Healthy("other/x"); !known || len(ids) > 0 {
		t.Errorf("%v, %v", ids, known)
	}
	if held := c.Held(); len(held) != 1 || !slices.Equal(held["nvidia.com/gpu"], []string{"0000:53:00.0", "0000:64:00.0", "0000:97:00.0"}) {
		t.Errorf("held: %v", held)
	}
	if _, known := c.Healthy("absent/x"); known {
		t.Error("known, and not in the file")
	}
	if err := read(`{"Data":{"RegisteredDevices":{"nvidia.com/gpu":["c"]}}}`); err != nil {
		t.Fatal(err)
	}
	if ids, _ := c.Healthy("nvidia.com/gpu"); !slices.Equal(ids, []string{"c"}) {
		t.Errorf("after a change: %v", ids)
	}
	for _, broken := range []string{`{"Data":`, `[]`, `{"Data":{"RegisteredDevices":{"x":"y"}}}`} {
		if err := read(broken); err == nil {
			t.Errorf("%s is no error", broken)
		}
		if _, known := c.Healthy("nvidia.com/gpu"); known {
			t.Error("known from a broken file")
		}
		if c.Held() != nil {
			t.Error("held by a broken file")
		}
	}
}

// TestNoCheckpoint: what is no file, or far too large, is not waited for or loaded.
func TestNoCheckpoint(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, CheckpointName)
	c := NewCheckpoint(dir)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Read(); err != nil {
		t.Errorf("a pipe: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(f.Truncate(maxCheckpoint+1), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Read(); err == nil {
		t.Error("a file of more than 8 MiB is no error")
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte(`{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu":["0000:53:00.0"]}},"Checksum":1}`))
	f.Add([]byte(`{"Data":{"RegisteredDevices":{"":[""]}}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseCheckpoint(data)
		if (err != nil) != (r == nil) {
			t.Fatal("neither an answer nor an error, or both")
		}
		if err != nil {
			return
		}
		for _, all := range []map[string][]string{r.registered, r.held} {
			for resource, ids := range all {
				if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
					t.Errorf("%q: %q is not a sorted set", resource, ids)
				}
			}
		}
	})
}

// TestRivals: that another plugin's socket dies is seen, however it dies; ours and those
// that were dead before do not count.
func TestRivals(t *testing.T) {
	dir := t.TempDir()
	socket := func(name string) *net.UnixListener {
		t.Helper()
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		t.Cleanup(func() { l.Close() })
		return l
	}
	now := time.Unix(1000, 0)
	r := NewRivals(dir, func() []string { return []string{"kata-gpu"} })
	look := func(closely bool, want bool) {
		t.Helper()
		now = now.Add(time.Second)
		if err := r.Look(closely, now); err != nil {
			t.Fatal(err)
		}
		if got := r.Left().Equal(now); got != want {
			t.Errorf("left now: %v, want %v", got, want)
		}
	}
	socket(SocketName)
	ours := socket("kata-gpu-0badc0de.sock")
	dead := socket("dead.sock")
	dead.Close()
	a, b := socket("a.sock"), socket("b.sock")
	if err := os.WriteFile(filepath.Join(dir, "file.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look(false, false)
	ours.Close()
	look(true, false)
	os.Remove(filepath.Join(dir, "dead.sock"))
	look(true, false)
	a.Close() // killed: the socket stays
	look(false, false)
	look(true, true)
	look(true, false)
	b.Close() // stopped: the socket goes
	os.Remove(filepath.Join(dir, "b.sock"))
	look(false, true)
	look(false, false)
	socket("b.sock") // another one of the same name
	look(false, false)
	// A socket has a name before anybody listens on it.
	early, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Bind(early, &unix.SockaddrUnix{Name: filepath.Join(dir, "c.sock")})
	}
	if err != nil {
		t.Fatal(err)
	}
	look(false, false)
	if err := unix.Listen(early, 1); err != nil {
		t.Fatal(err)
	}
	look(false, false)
	if err := unix.Close(early); err != nil {
		t.Fatal(err)
	}
	look(true, true)
	if err := NewRivals(filepath.Join(dir, "absent"), func() []string { return nil }).Look(true, now); err == nil {
		t.Error("no error without a directory")
	}
}
