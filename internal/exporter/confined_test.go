package exporter

import (
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/confine"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/journal"
)

var confinedNode = flag.String("confined-node", "", "run the exporter on the simulated node in a directory, confined, until standard input ends")

// TestConfinedProcess is no test: TestConfined starts it, since a process cannot take its
// confinement off again.
func TestConfinedProcess(t *testing.T) {
	dir := *confinedNode
	if dir == "" {
		return
	}
	o := options(dir)
	o.Listen, o.Textfile, o.Poll = "", filepath.Join(dir, "textfile", "x.prom"), time.Second
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	must(t, New("v1", Node{Roots: o.under(host.Under(dir, "device-exporter"))}, o, journal.Logger(os.Stderr)).Run(ctx))
	_, reads := os.ReadFile(filepath.Join(dir, "secret"))
	writes := os.WriteFile(filepath.Join(dir, "var/lib/kubelet/device-plugins/x"), nil, 0o600)
	report, err := confine.Process(confine.Access{Write: []string{filepath.Dir(o.Textfile)}})
	must(t, err)
	if report.ABI == 0 && os.Getenv("CI") != "" {
		t.Fatalf("the kernel of CI has to have Landlock: %s", report.Why)
	}
	if report.ABI == 0 {
		t.Skipf("SKIPPED: this kernel has no Landlock: %s", report.Why)
	}
	if reads == nil || writes == nil {
		t.Errorf("it can read a file that it has no business with (%v), or write to kubelet's directory (%v)", reads, writes)
	}
}

// TestConfined: with everything given up that it does not need, all of its sources can be read,
// those too that come after it was started in the directories that were there.
func TestConfined(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"), nil)
	all := n.GPUs()
	must(t, os.WriteFile(filepath.Join(n.dir, "secret"), nil, 0o600), os.MkdirAll(n.roots.Run, 0o755), os.MkdirAll(n.driver(), 0o755))
	n.kubelet.set(func() { n.kubelet.offers = map[string][]string{gpu: all} })
	process := confined(t, n)
	await := process.await
	await(`passthrough_devices{resource="nvidia.com/gpu",state="healthy"} 8`)
	await(`passthrough_resource_allocatable{resource="nvidia.com/gpu"} 8`)
	n.stop()
	n.kubelet.set(func() {
		n.kubelet.pods = []*api.PodResources{pod("ml", "one", container("main", n.kubelet.devices(gpu, all[0])))}
	})
	n.startKubelet() // on another socket of the same name
	n.checkpoint(map[string][]string{gpu: all})
	n.record(n.prepared("c", "claim", "gpu", all[5]))
	n.claimSpec("c", "gpu", all[5])
	n.cdiSpec("kata.", gpu, all...)
	for _, what := range []string{
		`pod="one"`, `passthrough_kubelet_registered{resource="nvidia.com/gpu"} 1`, `passthrough_claims{state="Prepared"} 1`,
		`passthrough_cdi_devices{kind="nvidia.com/gpu",state="resolvable"} 8`, `passthrough_cdi_devices{kind="vfio.katacontainers.io/claim",state="resolvable"} 1`,
	} {
		await(what)
	}
	must(t, n.Unbind(address(t, all[3])))
	await(`passthrough_devices{resource="nvidia.com/gpu",state="healthy"} 7`)
	process.end()
}

// TestConfinedLater: a directory that is made beside others after the start may not be read, where it is not mounted
// into a pod. What the others say stays known, and the log says what to do.
func TestConfinedLater(t *testing.T) {
	n := newNode(t, platform(t, "hgx-h100"), nil)
	all := n.GPUs()
	must(t, os.WriteFile(filepath.Join(n.dir, "secret"), nil, 0o600), os.MkdirAll(n.roots.Run, 0o755), os.MkdirAll(n.driver(), 0o755))
	n.kubelet.set(func() { n.kubelet.offers = map[string][]string{gpu: all} })
	n.cdiSpec("kata.", gpu, all[:7]...)
	p := confined(t, n)
	p.await(`passthrough_cdi_devices{kind="nvidia.com/gpu",state="missing"} 1`)
	static(n, all[7], all[7])
	// Without Landlock it is read.
	p.await(`passthrough_cdi_devices{kind="nvidia.com/gpu",state="unknown"} 1`, `passthrough_cdi_devices{kind="nvidia.com/gpu",state="resolvable"} 8`)
	if told := p.told(); strings.Contains(told, `passthrough_cdi_devices{kind="nvidia.com/gpu",state="unknown"} 1`) {
		p.denied = "etc/cdi: permission denied: if it was made after the exporter was started, restart the exporter"
		for _, what := range []string{`passthrough_cdi_devices{kind="nvidia.com/gpu",state="resolvable"} 7`, `passthrough_source_up{source="cdi_specs"} 0`} {
			if !strings.Contains(told, what) {
				t.Errorf("no %s in\n%s", what, told)
			}
		}
	}
	p.end()
	if !strings.Contains(p.log.String(), p.denied) {
		t.Errorf("the log does not say %q", p.denied)
	}
}

// confinedProcess is a test process that is the exporter, confined, with a file for its metrics.
type confinedProcess struct {
	*exec.Cmd
	t     *testing.T
	file  string
	news  *fsnotify.Watcher // of the file
	stdin io.Closer
	log   strings.Builder // for when it has ended
	// denied is what it may say that was denied, if anything.
	denied string
}

func confined(t *testing.T, n *node) *confinedProcess {
	t.Helper()
	p := &confinedProcess{t: t, file: filepath.Join(n.dir, "textfile", "x.prom")}
	dir := filepath.Dir(p.file)
	must(t, os.Mkdir(dir, 0o755))
	var err error
	p.news, err = fsnotify.NewWatcher()
	must(t, err, p.news.Add(dir))
	t.Cleanup(func() { must(t, p.news.Close()) })
	args := []string{"-test.run=^TestConfinedProcess$", "-test.v", "-confined-node=" + n.dir}
	if testing.CoverMode() != "" {
		args = append(args, "-test.gocoverdir="+dir) // the one place that it can write to
	}
	p.Cmd = exec.CommandContext(t.Context(), os.Args[0], args...)
	p.Stdout, p.Stderr = &p.log, &p.log
	p.stdin, err = p.StdinPipe()
	must(t, err, p.Start())
	return p
}

// told is what the file says.
func (p *confinedProcess) told() string {
	data, _ := os.ReadFile(p.file) // it comes
	return string(data)
}

// await waits until the file says something, or something else.
func (p *confinedProcess) await(what ...string) {
	p.t.Helper()
	deadline := time.After(60 * time.Second)
	for {
		data := p.told()
		if slices.ContainsFunc(what, func(s string) bool { return strings.Contains(data, s) }) {
			return
		}
		select {
		case <-p.news.Events:
		case <-deadline:
			_ = p.Process.Kill() // so that its log can be read
			_ = p.Wait()
			p.t.Fatalf("no %s in\n%s\n%s", what, data, p.log.String())
		}
	}
}

// end ends it, which has to have been denied nothing.
func (p *confinedProcess) end() {
	p.t.Helper()
	must(p.t, p.stdin.Close())
	if err := p.Wait(); err != nil {
		p.t.Errorf("%v\n%s", err, p.log.String())
	}
	p.t.Log(p.log.String())
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, "permission denied") && (p.denied == "" || !strings.Contains(line, p.denied)) {
			p.t.Error(line)
		}
	}
}
