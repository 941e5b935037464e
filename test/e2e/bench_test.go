package e2e

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/harness"
)

// BenchmarkProcess measures the plugin as a process: its memory once it has registered all
// devices, and what it does in 65 s in which nothing happens, which is two resyncs and a
// bit. Run it with -benchtime=1x.
func BenchmarkProcess(b *testing.B) {
	for _, count := range []int{8, 2048} {
		b.Run(fmt.Sprintf("devices=%d", count), func(b *testing.B) {
			n, err := harness.NewNode(sim.Many(count), binary, io.Discard)
			check(b, err)
			defer n.Close()
			check(b, n.StartKubelet(b.Context()))
			begun := time.Now()
			check(b, n.StartPlugin(b.Context()))
			check(b, n.Kubelet.Await(b.Context(), func() bool { return len(n.Kubelet.Allocatable(harness.GPU)) == count }))
			start := time.Since(begun)
			settled(b)
			for b.Loop() {
				before := usage(b, n.Plugin.PID())
				<-time.After(65 * time.Second)
				after := usage(b, n.Plugin.PID())
				b.ReportMetric(float64(start.Milliseconds()), "start-ms")
				b.ReportMetric(after.cpu-before.cpu, "idle-cpu-ms/65s")
				b.ReportMetric(float64(after.switches-before.switches), "idle-wakeups/65s")
				b.ReportMetric(float64(after.rss)/1024, "rss-MiB")
				b.ReportMetric(float64(after.anon)/1024, "anon-MiB")
			}
		})
	}
}

// settled gives the plugin the time to end what registration set off.
func settled(b *testing.B) {
	b.Helper()
	<-time.After(5 * time.Second)
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

type process struct {
	cpu       float64 // ms
	switches  int     // voluntary, of all threads
	rss, anon int     // KiB
}

func usage(b *testing.B, pid int) process {
	b.Helper()
	var p process
	status := func(path string) map[string]int {
		data, err := os.ReadFile(path)
		check(b, err)
		values := map[string]int{}
		for line := range strings.Lines(string(data)) {
			if fields := strings.Fields(line); len(fields) >= 2 {
				values[fields[0]], _ = strconv.Atoi(fields[1])
			}
		}
		return values
	}
	all := status(fmt.Sprintf("/proc/%d/status", pid))
	p.rss, p.anon = all["VmRSS:"], all["RssAnon:"]
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	check(b, err)
	for _, t := range tasks {
		p.switches += status(fmt.Sprintf("/proc/%d/task/%s/status", pid, t.Name()))["voluntary_ctxt_switches:"]
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/schedstat", pid, t.Name()))
		check(b, err)
		ns, err := strconv.ParseFloat(strings.Fields(string(data))[0], 64)
		check(b, err)
		p.cpu += ns / 1e6
	}
	return p
}
