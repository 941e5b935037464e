package dradriver

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

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
