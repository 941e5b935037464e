package exporter

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

var pageFile = flag.String("page", "", "write the page of TestPage to a file, to look at it")

// TestPage: what is on the node is on the page, in words, with nothing from elsewhere, and nothing
// that a name could bring in.
func TestPage(t *testing.T) {
	n := newNode(t, platform(t, "workstation"), func(o *Options) { o.Node = `node<script>` })
	if w := n.get("/"); w.Code != 503 {
		t.Errorf("before the first look: %d", w.Code)
	}
	all := n.GPUs()
	n.kubelet.set(func() {
		n.kubelet.offers = map[string][]string{gpu: all}
		n.kubelet.pods = []*api.PodResources{pod("ml", `<b>pod</b>`, container("main", n.kubelet.devices(gpu, all[0])))}
	})
	n.pass(0)
	w := n.get("/")
	page := w.Body.String()
	for _, want := range []string{
		`<html lang="en">`, "Devices of node&lt;script&gt;", "<svg", `id="devices"`, all[0], "ml/&lt;b&gt;pod&lt;/b&gt;/main",
		`<th scope="col">State</th>`, `<time datetime="2026-01-02T03:04:05Z">`, "pod_resources",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	for _, bad := range []string{"<script>", "<b>pod", "style=", "onclick", "href=\"http", "src=\"http", "%!"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
	wellFormed(t, page)
	for _, path := range []string{"/page.css", "/page.js"} {
		if w := n.get(path); w.Code != 200 || w.Body.Len() == 0 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	// Each link of the picture leads to a row.
	for rest := page; ; {
		_, after, ok := strings.Cut(rest, `href="#`)
		if !ok {
			break
		}
		id, _, _ := strings.Cut(after, `"`)
		if !strings.Contains(page, `id="`+id+`"`) {
			t.Errorf("a link leads to %s, which is not there", id)
		}
		rest = after
	}
	n.stop()
	n.time = n.time.Add(2 * time.Minute)
	n.look()
	page = n.get("/").Body.String()
	if !strings.Contains(page, "Not known now: pod_resources, allocatable") || strings.Contains(page, "ml/&lt;b") {
		t.Errorf("what is not known any more is told:\n%.600s", page)
	}
	if *pageFile != "" {
		must(t, os.WriteFile(*pageFile, w.Body.Bytes(), 0o644))
	}
}

// TestPageOfHolders: whoever has a device is on the page, whatever it is called and whatever has become of it; who only
// looks is told from who holds; and what nobody knows of CDI is not told as nothing.
func TestPageOfHolders(t *testing.T) {
	n := complete(t)
	all := n.GPUs()
	r := n.prepared("c-1", "watch", "gpu", all[0])
	r.Devices[0].Admin = true
	n.record(r)
	n.kubelet.set(func() {
		n.kubelet.pods = append(n.kubelet.pods,
			pod("ml", "other-plugin", container("main", n.kubelet.devices("example.com/gpu", all[2]))),
			pod("ml", "of-a-share", container("main", n.kubelet.devices("example.com/slice", all[3]+"::1"))),
			pod("ml", "of-what-left", container("main", n.kubelet.devices(gpu, all[4]))),
			pod("ml", "monitor", &api.ContainerResources{Name: "main", DynamicResources: []*api.DynamicResource{
				dynamic("ml", "watch", "c-1", n.deviceName("gpu", all[0]))}}))
	})
	must(t, n.Unbind(address(t, all[4])), n.Remove(address(t, all[4])))
	n.pass(time.Second)
	row := func(id string) string {
		_, rest, _ := strings.Cut(n.get("/").Body.String(), `<th scope="row">`+id+"</th>")
		text, _, _ := strings.Cut(rest, "</tr>")
		return text
	}
	for id, want := range map[string]string{
		all[0]: "ml/monitor/main by claim watch (only looks: admin access), ml/one/main", all[1]: "<td>-</td>", all[2]: "ml/other-plugin/main",
		all[3]: "ml/of-a-share/main", all[4]: "ml/of-what-left/main",
	} {
		if got := row(id); !strings.Contains(got, want) {
			t.Errorf("%s: %s\nwant %s", id, got, want)
		}
	}
	if got := row(all[1]); !strings.Contains(got, "<td>Resolves</td>") {
		t.Errorf("%s", got)
	}
	wellFormed(t, n.get("/").Body.String())
	withheld := written(n, n.roots.CDI, strings.Repeat(" ", 300<<10))
	n.pass(time.Second)
	if got := row(all[1]); !strings.Contains(got, "<td>Unknown</td>") {
		t.Errorf("a spec that was not examined may have its name: %s", got)
	}
	must(t, os.Remove(withheld), os.RemoveAll(n.roots.CDI), os.WriteFile(n.roots.CDI, nil, 0o600))
	for range 3 {
		n.pass(40 * time.Second)
	}
	if got := row(all[1]); !strings.Contains(got, "<td>not known</td>") {
		t.Errorf("the specs cannot be read: %s", got)
	}
}

// wellFormed: every element is closed in order.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
