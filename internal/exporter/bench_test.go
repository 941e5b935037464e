package exporter

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/internal/sim"
)

// large is a node with 2,048 devices and 500 pods, each with four of them in two containers.
func large(b *testing.B) *node {
	b.Helper()
	n := newNode(b, sim.Many(2048), nil)
	all := n.GPUs()
	n.kubelet.set(func() {
		n.kubelet.offers = map[string][]string{gpu: all}
		for i := range 500 {
			four := all[4*i : 4*i+4]
			n.kubelet.pods = append(n.kubelet.pods, pod(fmt.Sprintf("namespace-%d", i%20), fmt.Sprintf("a-pod-with-a-name-%04d", i),
				container("main", n.kubelet.devices(gpu, four[:3]...)), container("sidecar", n.kubelet.devices(gpu, four[3]))))
		}
	})
	n.pass(0)
	return n
}

// BenchmarkScrape is one scrape over HTTP: of the last state, and of the same by the library's registry, which
// makes and checks every series anew; and one of a collector that dials kubelet for each scrape and
// makes only the allocations of its answer, as some exporters do.
func BenchmarkScrape(b *testing.B) {
	n := large(b)
	registry := prometheus.NewRegistry()
	registry.MustRegister(newChecked(n.e.collector), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for name, handler := range map[string]http.Handler{
		"state": n.e.handler(), "registry": promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}),
	} {
		for _, encoding := range []string{"identity", "gzip"} {
			b.Run(name+"/"+encoding, func(b *testing.B) { scrapes(b, n, handler, encoding) })
		}
	}
	b.Run("dialling", func(b *testing.B) {
		asked, began := n.kubelet.asked.Load(), cpu(b)
		for b.Loop() {
			naive(b, n.socket(), io.Discard)
		}
		b.ReportMetric((cpu(b)-began)/float64(b.N), "cpu-ms/op") // kubelet's part is in it
		b.ReportMetric(float64(n.kubelet.asked.Load()-asked)/float64(b.N), "questions/op")
	})
}

// scrapes is one scrape after the other, as Prometheus asks for it.
func scrapes(b *testing.B, n *node, handler http.Handler, encoding string) {
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept-Encoding", encoding)
	asked, began := n.kubelet.asked.Load(), cpu(b)
	w := &counting{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		w.bytes = 0
		handler.ServeHTTP(w, r)
	}
	b.ReportMetric((cpu(b)-began)/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(w.bytes), "B/scrape")
	b.ReportMetric(float64(n.kubelet.asked.Load()-asked)/float64(b.N), "questions/op")
}

// counting throws away what it is given.
type counting struct {
	header http.Header
	bytes  int
}

func (c *counting) Header() http.Header { return c.header }
func (c *counting) WriteHeader(int)     {}
func (c *counting) Write(p []byte) (int, error) {
	c.bytes += len(p)
	return len(p), nil
}

// cpu is what the process has used of processors, in milliseconds: how long something takes says
// little on a machine that others work on as well.
func cpu(b *testing.B) float64 {
	b.Helper()
	var u unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}

// naive dials, asks, writes and hangs up.
func naive(b *testing.B, socket string, to io.Writer) {
	b.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	must(b, err)
	defer conn.Close()
	answer, err := api.NewPodResourcesListerClient(conn).List(context.Background(), &api.ListPodResourcesRequest{})
	must(b, err)
	for _, p := range answer.GetPodResources() {
		for _, c := range p.GetContainers() {
			for _, d := range c.GetDevices() {
				for _, id := range d.GetDeviceIds() {
					fmt.Fprintf(to, "allocation{pci_address=%q,resource=%q,namespace=%q,pod=%q,container=%q} 1\n",
						id, d.GetResourceName(), p.GetNamespace(), p.GetName(), c.GetName())
				}
			}
		}
	}
}

// BenchmarkJoin is what each look costs beside the hardware: all files, and the state.
func BenchmarkJoin(b *testing.B) {
	n := large(b)
	for b.Loop() {
		n.e.join(0, n.time)
	}
}

// BenchmarkAsk is one round of questions to kubelet on the kept connection.
func BenchmarkAsk(b *testing.B) {
	n := large(b)
	for b.Loop() {
		if !n.ask() {
			b.Fatal(n.e.facts.Pods.Err)
		}
	}
}

// BenchmarkMemory is what stays on the heap.
func BenchmarkMemory(b *testing.B) {
	n := large(b)
	for b.Loop() {
		n.pass(0)
		_, err := n.e.collector.Gather()
		must(b, err)
	}
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/1e6, "MB-heap")
	runtime.KeepAlive(n)
}
