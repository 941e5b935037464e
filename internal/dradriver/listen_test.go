package dradriver

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"kata-device-plugin/internal/host"
)

// TestSocketsAreKubeletsAlone: both of the driver's sockets are made anew over what a kill left, have mode
// 0600 whatever the umask is, answer, and go when it stops.
func TestSocketsAreKubeletsAlone(t *testing.T) {
	old := syscall.Umask(0) // the mode must not be the umask's merit
	defer syscall.Umask(old)
	for _, pod := range []string{"", "8a5f1a4e-5d60-4c35-8f2b-6a4f5d0c7e11"} {
		dir, err := os.MkdirTemp("", "k") // a socket's path is short
		must(t, err)
		t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
		d := New("test", "v1", host.Roots{CDI: dir}, Options{Kubelet: dir, Node: "n", Pod: pod}, slog.New(slog.DiscardHandler))
		sockets := socketsOf(d.registry(), d.data(), pod)
		for _, path := range sockets {
			must(t, os.MkdirAll(filepath.Dir(path), 0o750))
			must(t, os.WriteFile(path, nil, 0o666)) // in the way
		}
		client, err := kubernetes.NewForConfig(&rest.Config{Host: "127.0.0.1:1"}) // nobody asks it here
		must(t, err)
		helper, err := kubeletplugin.Start(d.logging(t.Context()), &plugin{feed: newFeed()}, d.helperOptions(client)...)
		must(t, err)
		for _, path := range sockets {
			info, err := os.Lstat(path)
			must(t, err)
			if got, want := info.Mode(), fs.ModeSocket|0o600; got != want {
				t.Errorf("%s has mode %v, want %v", path, got, want)
			}
			c, err := net.Dial("unix", path)
			must(t, err)
			must(t, c.Close())
		}
		helper.Stop()
		for _, path := range sockets {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", path, err)
			}
		}
	}
}

// TestLongDirectories: whatever the length of kubelet's directory is, the driver serves, or its command
// line is refused before anything is done.
func TestLongDirectories(t *testing.T) {
	const pod = "8a5f1a4e-5d60-4c35-8f2b-6a4f5d0c7e11"
	base, err := os.MkdirTemp("", "k")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(base)) })
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "127.0.0.1:1"})
	must(t, err)
	const longest = 107 - len("/plugins/vfio.katacontainers.io/dra-"+pod+".sock") // docs/dra.md says 30
	served := 0
	for n := len(base) + 2; n < 128; n++ {
		dir := base + "/" + strings.Repeat("d", n-len(base)-1)
		o := Options{Kubelet: dir, Node: "n", Pod: pod, Poll: time.Second}
		if err := o.check(nil, "gpu"); err != nil {
			if !strings.Contains(err.Error(), "--kubelet-dir") || n <= longest {
				t.Errorf("a directory of %d bytes is refused: %v", n, err)
			}
			continue
		}
		if n > longest {
			t.Errorf("a directory of %d bytes is taken", n)
		}
		d := New("test", "v1", host.Roots{CDI: base}, o, slog.New(slog.DiscardHandler))
		must(t, os.MkdirAll(d.registry(), 0o750))
		must(t, os.MkdirAll(d.data(), 0o750))
		helper, err := kubeletplugin.Start(d.logging(t.Context()), &plugin{feed: newFeed()}, d.helperOptions(client)...)
		if err != nil {
			t.Errorf("a directory of %d bytes: %v", n, err)
			continue
		}
		served++
		for _, path := range socketsOf(d.registry(), d.data(), pod) {
			c, err := net.Dial("unix", path)
			if err != nil {
				t.Errorf("a directory of %d bytes: %v", n, err)
				continue
			}
			must(t, c.Close())
		}
		helper.Stop()
		if left, err := os.ReadDir(d.registry()); err != nil || len(left) > 0 {
			t.Errorf("a directory of %d bytes: %v is left, %v", n, left, err)
		}
	}
	if served < 8 {
		t.Errorf("only %d lengths were tried", served)
	}
}
