package cli_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
)

// cluster writes the dump of a large cluster as kubectl get -o yaml prints one: each pod has one
// device, one pod in a hundred waits, and each claim has two requests.
func cluster(b *testing.B, file string, pods, nodes, claims int) int64 {
	b.Helper()
	f, err := os.Create(file)
	must(b, err)
	w := bufio.NewWriter(f)
	fmt.Fprint(w, "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\nitems:\n")
	for i := range nodes {
		fmt.Fprintf(w, `- apiVersion: v1
  kind: Node
  metadata: {name: n%[1]d, uid: n%[1]d, labels: {pool: p%[2]d}}
  status:
    allocatable: {cpu: "64", nvidia.com/gpu: "16", memory: 512Gi}
    capacity: {cpu: "64", nvidia.com/gpu: "16", memory: 512Gi}
`, i, i%10)
	}
	for i := range pods {
		where, phase := fmt.Sprintf("    nodeName: n%d\n", i%nodes), "Running"
		if i%100 == 0 {
			where, phase = "", "Pending"
		}
		fmt.Fprintf(w, `- apiVersion: v1
  kind: Pod
  metadata:
    name: p%[1]d
    namespace: ns%[2]d
    uid: u%[1]d
    labels: {app: a%[2]d}
    managedFields:
    - apiVersion: v1
      fieldsType: FieldsV1
      fieldsV1: {f:metadata: {f:labels: {.: {}, f:app: {}}}, f:spec: {f:containers: {'k:{"name":"c"}': {.: {}, f:image: {}, f:resources: {}}}}}
      manager: kube-controller-manager
      operation: Update
  spec:
    containers:
    - name: c
      image: registry.example/app:v1
      env: [{name: A, value: "1"}]
      resources: {limits: {cpu: "1", nvidia.com/gpu: "1"}, requests: {cpu: "1", nvidia.com/gpu: "1"}}
%[3]s  status: {phase: %[4]s, podIP: 10.0.0.1}
`, i, i%50, where, phase)
	}
	for i := range claims {
		fmt.Fprintf(w, `- apiVersion: resource.k8s.io/v1
  kind: ResourceClaim
  metadata: {name: c%[1]d, namespace: ns%[2]d, uid: c%[1]d}
  spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu}}, {name: b, exactly: {deviceClassName: gpu}}]}}
`, i, i%50)
	}
	must(b, w.Flush())
	info, err := f.Stat()
	must(b, err, f.Close())
	return info.Size()
}

// BenchmarkMemory is what a check of a large cluster's dump takes: the most that was alive when the
// collector of garbage had run, as it says itself, and the most that was resident.
func BenchmarkMemory(b *testing.B) {
	file := filepath.Join(b.TempDir(), "cluster.yaml")
	size := cluster(b, file, 10_000, 1_000, 5_000)
	self, err := os.Executable()
	must(b, err)
	alive := regexp.MustCompile(`(?m)^gc .*?(\d+)->(\d+)->(\d+) MB`)
	for _, env := range []string{"GOGC=100", "GOMEMLIMIT=256MiB"} {
		b.Run(env, func(b *testing.B) {
			var live, resident int
			for b.Loop() {
				var trace bytes.Buffer
				c := exec.Command(self)
				c.Args = []string{"kubectl-device", "check", "--fail-on", "never", "--output", "json", file} // the name makes it the command
				c.Env, c.Stderr = append(os.Environ(), "GODEBUG=gctrace=1", env), &trace
				must(b, c.Run())
				for _, m := range alive.FindAllStringSubmatch(trace.String(), -1) {
					n, err := strconv.Atoi(m[3])
					must(b, err)
					live = max(live, n)
				}
				if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
					resident = max(resident, int(usage.Maxrss>>10))
				}
			}
			if live == 0 {
				b.Fatal("the command has not told what it collected")
			}
			b.ReportMetric(float64(size>>20), "dump-MB")
			b.ReportMetric(float64(live), "live-MB")
			b.ReportMetric(float64(resident), "resident-MB")
		})
	}
}
