package kubelet

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	entries := c.Entries()
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.PodUID+a.Device, b.PodUID+b.Device) })
	if want := []Entry{
		{"u", "c", "nvidia.com/gpu", "0000:53:00.0"}, {"u", "c", "nvidia.com/gpu", "0000:97:00.0"}, {"v", "c", "nvidia.com/gpu", "0000:64:00.0"},
	}; !slices.Equal(entries, want) {
		t.Errorf("entries: %v", entries)
	}
	if err := read(`{"Data":{"RegisteredDevices":{"nvidia.com/gpu":["c"]}}}`); err != nil {
		t.Fatal(err)
	}
	if ids, _ := c.Healthy("nvidia.com/gpu"); !slices.Equal(ids, []string{"c"}) {
		t.Errorf("after a change: %v", ids)
	}
	for _, broken := range []string{"", "{", `{"Data":`, `[]`, `{}`, `null`, `{"Data":null}`, `{"Data":{"RegisteredDevices":{"x":"y"}}}`} {
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

// TestNoCheckpoint: what stands in the file's place and is none, and what is far too large, is an error,
// which is neither waited for nor loaded. Only that there is no file says that kubelet has written none.
func TestNoCheckpoint(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(path string) error
		want string // in the error, "" for none
	}{
		{"no file", func(string) error { return nil }, ""},
		{"no directory", func(path string) error { return os.Remove(filepath.Dir(path)) }, "no such file"},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o700) }, "no regular file"},
		{"a pipe", func(path string) error { return unix.Mkfifo(path, 0o600) }, "no regular file"},
		{"a socket", func(path string) error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			return errors.Join(err, unix.Bind(fd, &unix.SockaddrUnix{Name: path}), unix.Close(fd))
		}, "no regular file"},
		{"a link to a file", func(path string) error {
			other := path + ".other"
			return errors.Join(os.WriteFile(other, []byte(`{"Data":{"RegisteredDevices":{"r":["a"]}}}`), 0o600), os.Symlink(other, path))
		}, "no regular file"},
		{"a link to nothing", func(path string) error { return os.Symlink(path+".none", path) }, "no regular file"},
		{"more than 8 MiB", func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, maxCheckpoint+1))
		}, "more than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "checkpoint") // a socket's path is short
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			if err := tt.make(filepath.Join(dir, CheckpointName)); err != nil {
				t.Fatal(err)
			}
			c := NewCheckpoint(dir)
			err = c.Read()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) || c.Known() {
				t.Errorf("%v, known: %t, want %q", err, c.Known(), tt.want)
			}
		})
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte(`{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"nvidia.com/gpu":["0000:53:00.0"]}},"Checksum":1}`))
	f.Add([]byte(`{"Data":{"RegisteredDevices":{"":[""]}}}`))
	f.Add([]byte(`null`))
	f.Add([]byte(`{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"r","DeviceIDs":{"0":["a"],"1":["a"]}}],"RegisteredDevices":{"r":["a"]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parseCheckpoint(data)
		if (err != nil) != (r == nil) {
			t.Fatal("neither an answer nor an error, or both")
		}
		if err != nil {
			return
		}
		seen := map[Entry]bool{}
		for _, e := range r.entries {
			if seen[e] {
				t.Errorf("twice: %+v", e)
			}
			seen[e] = true
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
