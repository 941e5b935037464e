//go:build !kubernetes134

package exporter

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/kubelet"
)

// hgx is a node with all kinds of devices: eight GPUs, of which a pod has three, one is without its
// character device and one is with another driver.
func hgx(t *testing.T) (n *node, pod string) {
	t.Helper()
	n = newNode(t, "hgx-h100")
	n.startKubelet()
	n.must(n.StartPlugin(n.ctx))
	n.must(n.AwaitAll(n.ctx))
	train := kubelet.Pod("train", harness.GPU, 3)
	n.must(n.Kubelet.Admit(n.ctx, train))
	held := n.Kubelet.Allocated(train, "c", harness.GPU)
	free := slices.DeleteFunc(n.GPUs(), func(id string) bool { return slices.Contains(held, id) })
	n.must(n.Unbind(n.address(free[0])))
	n.must(n.Unbind(n.address(free[1])))
	n.must(n.BindWithoutCdev(n.address(free[1]), "vfio-pci"))
	n.startExporter()
	n.await("the pod is known", func(m metrics) string {
		if m[`resource_allocated{resource="nvidia.com/gpu"}`] != 3 {
			return "not yet"
		}
		return ""
	})
	return n, "default/train/c"
}

// TestPage looks at the page as people do.
func TestPage(t *testing.T) {
	n, pod := hgx(t)
	b := newBrowser(t)
	b.do("open", chromedp.EmulateViewport(1440, 900), chromedp.Navigate(n.url), chromedp.WaitVisible(chromedp.CSS("svg")))
	b.picture("hgx-wide")
	if words := value[string](b, `document.querySelector("table").innerText`); !strings.Contains(words, pod) {
		t.Errorf("the table does not say who has a device:\n%s", words)
	}
	b.everywhere("hgx")
	b.clean(n.url)
}

// everywhere looks at the page in a narrow window, and in both schemes.
func (b *browser) everywhere(name string) {
	b.t.Helper()
	b.do("narrow", chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(2)))
	b.picture(name + "-narrow")
	if wide := value[int](b, `document.documentElement.scrollWidth`); wide > 390 {
		b.t.Errorf("the page is %d wide in a window of 390", wide)
	}
	b.do("wide", chromedp.EmulateViewport(1440, 900))
	for _, scheme := range []string{"dark", "light"} {
		b.scheme(scheme)
		b.picture(name + "-" + scheme)
		b.audit()
	}
}

// TestPlatforms: the same of other machines: one with a GPU that cannot be handed out, and one with NICs whose
// interfaces the exporter cannot know.
func TestPlatforms(t *testing.T) {
	for _, tt := range []struct {
		platform string
		change   func(*node)
		flags    []string
		words    []string
	}{
		{"workstation", func(n *node) {
			audio := n.address("0000:01:00.1")
			n.must(n.Unbind(audio))
			n.must(n.Bind(audio, "snd_hda_intel"))
		}, nil, []string{"unhealthy", "HST002", "snd_hda_intel", "Not known now: pod_resources"}},
		{"sriov-cpu", func(n *node) {
			config := filepath.Join(n.Dir, "config.json")
			n.must(os.WriteFile(config, []byte(`{"resourceList":[{"resourceName":"vfs","resourcePrefix":"example.com","selectors":{"drivers":["vfio-pci"]}}]}`), 0o600))
		}, []string{"--nic-config-file=DIR/config.json"}, []string{"example.com/vfs", "not declared", "Something could not be read", "network namespace"}},
	} {
		t.Run(tt.platform, func(t *testing.T) {
			n := newNode(t, tt.platform)
			tt.change(n)
			for i, flag := range tt.flags {
				tt.flags[i] = strings.ReplaceAll(flag, "DIR", n.Dir)
			}
			n.startExporter(tt.flags...)
			n.await("the hardware is known", is(`source_up{source="hardware"}`, 1))
			b := newBrowser(t)
			b.do("open", chromedp.EmulateViewport(1440, 900), chromedp.Navigate(n.url), chromedp.WaitVisible(chromedp.CSS("svg")))
			b.picture(tt.platform)
			text := value[string](b, `document.querySelector("main").innerText`)
			for _, want := range tt.words {
				if !strings.Contains(text, want) {
					t.Errorf("the page does not say %q:\n%s", want, text)
				}
			}
			b.audit()
			b.clean(n.url)
		})
	}
}

// focused says in a word what has the focus.
const focused = `(() => {
  const e = document.activeElement;
  return e.id || e.getAttribute("href") || e.tagName;
})()`

// TestKeyboard walks through the page without a mouse: the way past the picture comes first, each
// device can be reached, and one can see where one is.
func TestKeyboard(t *testing.T) {
	n, _ := hgx(t)
	b := newBrowser(t)
	b.do("open", chromedp.Navigate(n.url), chromedp.WaitVisible(chromedp.CSS("#follow")))
	var way []string
	for {
		b.do("tab", chromedp.KeyEvent(kb.Tab))
		at := value[string](b, focused)
		if at == "BODY" || slices.Contains(way, at) {
			break
		}
		way = append(way, at)
		if !value[bool](b, `(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2; })()`) {
			t.Errorf("one does not see that %s has the focus", at)
		}
	}
	want := []string{"#devices", "follow", "picture"}
	want = append(want, value[[]string](b, `[...document.querySelectorAll("svg a")].map((a) => a.getAttribute("href"))`)...)
	if want = append(want, "devices-table", "sources-table"); !slices.Equal(way, want) || len(want) < 12 {
		t.Errorf("the way is %v, want %v", way, want)
	}
	b.do("to a device", chromedp.Focus(chromedp.CSS("svg a")), chromedp.KeyEvent(kb.Enter))
	b.await(`location.hash !== "" && document.querySelector(location.hash + ":target") !== null && document.querySelector(location.hash).tagName === "TR"`)
	b.clean(n.url)
}

// clock takes the page's clock away: what it would do every so often happens when a test says tick.
const clock = `window.setInterval = (round, every) => { window.tick = round; window.every = every; }`

// TestFollow: what happens on the node comes to the page by itself, and takes neither the focus nor
// the place in a table away; a page that was told to stand still does; and one whose exporter has
// gone says so.
func TestFollow(t *testing.T) {
	n, _ := hgx(t)
	b := newBrowser(t)
	b.before(clock)
	b.do("open", chromedp.EmulateViewport(600, 900), chromedp.Navigate(n.url), chromedp.WaitVisible(chromedp.CSS("#follow")))
	if every := value[int](b, `every`); every != 10000 {
		t.Errorf("the page follows every %d ms", every)
	}
	b.do("focus", chromedp.Focus(chromedp.CSS("#devices-table")))
	value[int](b, `window.mark = 1, document.querySelector("#devices-table").scrollLeft = 77`)
	gone := n.GPUs()[len(n.GPUs())-1]
	row := `document.getElementById("` + rowOf(b, gone) + `").innerText`
	healthy := func(count float64) {
		t.Helper()
		n.await(gone, func(m metrics) string {
			if m[`devices{resource="nvidia.com/gpu",state="healthy"}`] != count {
				return "it is not known yet"
			}
			return ""
		})
	}
	healthy(6)
	n.must(n.Unbind(n.address(gone)))
	healthy(5)
	value[string](b, `tick(), "a round"`)
	b.await(row + `.includes("HST020")`)
	if at := value[string](b, focused); at != "devices-table" {
		t.Errorf("the focus is at %s", at)
	}
	if at := value[int](b, `document.querySelector("#devices-table").scrollLeft`); at != 77 {
		t.Errorf("the table is scrolled to %d", at)
	}
	b.do("stop", chromedp.Click(chromedp.CSS("#follow")))
	n.must(n.Bind(n.address(gone), "vfio-pci"))
	healthy(6)
	asked := b.requests()
	if now := value[string](b, `tick(), `+row); !strings.Contains(now, "HST020") || b.requests() != asked {
		t.Errorf("the page was told to stand still, asks, and says %q", now)
	}
	b.do("go on", chromedp.Click(chromedp.CSS("#follow")))
	b.await(row + `.includes("healthy")`)
	if value[int](b, `window.mark`) != 1 {
		t.Error("the page was loaded again")
	}
	b.clean(n.url)
	n.must(n.exporter.Kill())
	value[string](b, `tick(), "a round"`)
	b.await(`document.querySelector("#news").textContent.includes("does not answer")`)
}

// TestHangs: an exporter that takes the question and does not answer is one that does not answer, and what is shown is
// said to be old. It is shown anew once the exporter goes on.
func TestHangs(t *testing.T) {
	n, _ := hgx(t)
	b := newBrowser(t)
	b.before(clock + `
		const wait = AbortSignal.timeout.bind(AbortSignal);
		AbortSignal.timeout = (ms) => { window.patience = ms; return wait(3000); }`)
	b.do("open", chromedp.Navigate(n.url), chromedp.WaitVisible(chromedp.CSS("#follow")))
	process, err := os.FindProcess(n.exporter.PID())
	n.must(err)
	n.must(process.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { _ = process.Signal(syscall.SIGCONT) })
	value[string](b, `tick(), "a round"`)
	b.await(`document.querySelector("#news").textContent.includes("does not answer")`)
	if ms := value[int](b, `patience`); ms != 10000 {
		t.Errorf("it waits for %d ms", ms)
	}
	n.must(process.Signal(syscall.SIGCONT))
	value[string](b, `tick(), "a round"`)
	b.await(`document.querySelector("#news").textContent === ""`)
}

// rowOf is the name of a device's row.
func rowOf(b *browser, id string) string {
	b.t.Helper()
	return value[string](b, `[...document.querySelectorAll("#devices-table tbody tr")].find((row) => row.cells[0].textContent === "`+id+`").id`)
}

// TestWithoutScripts: everything but the button is there.
func TestWithoutScripts(t *testing.T) {
	n, pod := hgx(t)
	b := newBrowser(t, chromedp.Flag("blink-settings", "scriptEnabled=false"))
	b.do("open", chromedp.Navigate(n.url), chromedp.WaitVisible(chromedp.CSS("svg")))
	page, err := chromedp.Run(b.ctx, chromedp.OuterHTML(chromedp.CSS("html")))
	must(t, err)
	for _, want := range []string{pod, "HST020", "HST021", "Sources"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %s", want)
		}
	}
	if strings.Contains(page, "<button") {
		t.Error("there is a button that nothing answers to")
	}
	b.picture("no-scripts")
	b.clean(n.url)
}
