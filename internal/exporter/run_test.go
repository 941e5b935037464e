package exporter

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/sim"
)

// TestTextfile runs the program: the file is there, is whole each time that it is looked at,
// follows the node, and goes with the program. node_exporter's own series are not in it.
func TestTextfile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "passthrough.prom")
	n := newNode(t, platform(t, "hgx-h100"), func(o *Options) { o.Listen, o.Textfile, o.Poll = "", file, time.Second })
	n.e.now, n.e.collector.now = time.Now, time.Now
	all := n.GPUs()
	n.kubelet.set(func() {
		n.kubelet.offers = map[string][]string{gpu: all}
		n.kubelet.pods = []*api.PodResources{pod("ml", "one", container("main", n.kubelet.devices(gpu, all[0])))}
	})
	w, err := fsnotify.NewWatcher()
	must(t, err, w.Add(dir))
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.e.run(ctx, n.e.looking, func() {}) }()
	await := func(what string) {
		t.Helper()
		deadline := time.After(30 * time.Second)
		for {
			data, err := os.ReadFile(file)
			text := string(data)
			if err == nil && (!strings.HasPrefix(text, "# HELP") || !strings.HasSuffix(text, "\n") || strings.Contains(text, "go_goroutines")) {
				t.Fatalf("torn, or with what is not ours:\n%s", text)
			}
			if strings.Contains(text, what) {
				return
			}
			select {
			case <-w.Events:
			case err := <-w.Errors:
				t.Fatal(err)
			case <-deadline:
				t.Fatalf("no %s in\n%s", what, text)
			}
		}
	}
	await(`passthrough_devices{resource="nvidia.com/gpu",state="healthy"} 8`)
	await(`pod="one"`)
	must(t, n.Unbind(address(t, all[3])))
	await(`passthrough_devices{resource="nvidia.com/gpu",state="healthy"} 7`)
	n.kubelet.set(func() { n.kubelet.pods = nil })
	await(`passthrough_resource_allocated{resource="nvidia.com/gpu"} 0`)
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v %v", info, err)
	}
	cancel()
	must(t, <-done)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what nobody keeps true is still told: %v", err)
	}
}

// TestTextfileOfAnother: where two exporters overlap, the one that ends leaves what the other has written, also where
// that has the place on the disk which its own file had.
func TestTextfileOfAnother(t *testing.T) {
	for name, tt := range map[string]struct {
		then func(file string) error
		stay bool
	}{
		"its own": {func(string) error { return nil }, false},
		"gone":    {os.Remove, false},
		"another's": {func(file string) error {
			return errors.Join(os.WriteFile(file+".new", []byte("# HELP x\n"), 0o644), os.Rename(file+".new", file))
		}, true},
		"another's, in place": {func(file string) error { return os.WriteFile(file, []byte("# HELP x\n"), 0o644) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "passthrough.prom")
			n := newNode(t, platform(t, "hgx-h100"), func(o *Options) { o.Listen, o.Textfile = "", file })
			n.pass(0)
			must(t, n.e.write())
			n.pass(time.Second)
			must(t, n.e.write(), tt.then(file), n.e.unwrite())
			if _, err := os.Stat(file); (err == nil) != tt.stay {
				t.Errorf("%v, and that it stays is %t", err, tt.stay)
			}
		})
	}
	file := filepath.Join(t.TempDir(), "passthrough.prom")
	n := newNode(t, platform(t, "hgx-h100"), func(o *Options) { o.Listen, o.Textfile = "", file })
	must(t, os.WriteFile(file, nil, 0o644), n.e.unwrite())
	if _, err := os.Stat(file); err != nil {
		t.Errorf("one that has written nothing has removed another's: %v", err)
	}
}

// get asks the exporter's server.
func (n *node) get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	n.e.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// TestProbes: alive at once, ready once the hardware is known, and not any more when it is not.
func TestProbes(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"), nil)
	want := func(when, path string, code int) {
		t.Helper()
		if w := n.get(path); w.Code != code {
			t.Errorf("%s: %s is %d %s, want %d", when, path, w.Code, w.Body, code)
		}
	}
	want("at first", "/livez", 200)
	want("at first", "/readyz", 503)
	n.stop() // kubelet is no reason
	n.look()
	want("after a look", "/readyz", 200)
	n.time = n.time.Add(2 * time.Minute)
	want("without looks", "/livez", 200)
	want("without looks", "/readyz", 503)
	want("always", "/metrics", 200)
	want("always", "/nothing", 404)
}

// TestScrapesAskNobody: however often it is scraped, kubelet is asked no more, and nothing is read.
func TestScrapesAskNobody(t *testing.T) {
	n := simple(t)
	asked, before := n.kubelet.asked.Load(), n.text()
	must(t, n.Unbind(address(t, n.GPUs()[1])))
	for range 50 {
		if w := n.get("/metrics"); w.Code != 200 || !strings.Contains(w.Body.String(), "go_goroutines") {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if n.kubelet.asked.Load() != asked || n.scrape() != before {
		t.Errorf("kubelet was asked %d times more", n.kubelet.asked.Load()-asked)
	}
}

// TestNoNode: without sysfs there is nothing to export, which is an error with the path.
func TestNoNode(t *testing.T) {
	n := newNode(t, sim.Platform{Name: "bare"}, func(o *Options) { o.Listen = "" })
	n.e.roots.Sys = filepath.Join(n.dir, "nowhere")
	if err := n.e.run(t.Context(), n.e.looking, func() {}); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("%v", err)
	}
}

// TestPodUID: the UID comes as a label where it is asked for, and how many are not known is told.
func TestPodUID(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"), func(o *Options) { o.UIDs = true })
	all := n.GPUs()
	n.kubelet.set(func() {
		n.kubelet.pods = []*api.PodResources{
			pod("ml", "one", container("main", n.kubelet.devices(gpu, all[0]))), pod("ml", "two", container("main", n.kubelet.devices(gpu, all[1]))),
		}
	})
	n.checkpoint(map[string][]string{gpu: all},
		given{PodUID: "u-1", ContainerName: "main", ResourceName: gpu, DeviceIDs: map[string][]string{"0": {all[0]}}},
		given{PodUID: "u-2", ContainerName: "main", ResourceName: gpu, DeviceIDs: map[string][]string{"0": {all[1]}}},
		given{PodUID: "u-old", ContainerName: "main", ResourceName: gpu, DeviceIDs: map[string][]string{"0": {all[1]}}})
	n.pass(0)
	n.want("pod_uids", `{result="ambiguous"} 1`, `{result="resolved"} 1`, `{result="unknown"} 0`)
	text := strings.Join(n.series("device_allocation_info"), "\n")
	if !strings.Contains(text, `pod="one",pod_uid="u-1"`) || !strings.Contains(text, `pod="two",pod_uid=""`) {
		t.Error(text)
	}
}
