//go:build !kubernetes134

package live_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/internal/exit"
	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/plane"
)

// preflight runs the program as it is shipped, in the cluster.
type preflight struct {
	program    harness.Command
	kubeconfig string
}

// ready is what the test reads of the answer.
type ready struct {
	Ways []struct {
		Way   string
		Lines []struct {
			Question, Answer    string
			Findings, WouldTell []string
		}
	}
	Migrate []struct {
		Resource   string
		Dependents int
		Workloads  []struct {
			Namespace, Kind string
			Count           int
		}
	}
}

func (p preflight) run(t *testing.T, args ...string) (r ready, code int) {
	t.Helper()
	args = append([]string{"preflight", "--live", "-A", "-o", "json", "--kubeconfig", p.kubeconfig}, args...)
	out, told, code, err := p.program.Run(t.Context(), args...)
	must(t, err)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, told)
	}
	return r, code
}

// line is the answer to a question, with the IDs of what is wrong.
func (r ready) line(t *testing.T, question string) string {
	t.Helper()
	for _, l := range r.Ways[0].Lines {
		if l.Question == question {
			return strings.TrimSpace(l.Answer + " " + strings.Join(l.Findings, ","))
		}
	}
	t.Fatalf("nobody asks whether %s", question)
	return ""
}

// TestPreflight: what only a cluster shows, and what the driver's manifests bring with them.
func TestPreflight(t *testing.T) {
	program, err := harness.BuildCommand(t.Context(), t.TempDir())
	must(t, err)
	p := plane.Start(t, plane.Options{})
	node(t, p, "new", "v1.37.2", "containerd://2.1.4")
	node(t, p, "old", "v1.30.9", "containerd://1.6.9")
	p.Create(t, `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: kata}
handler: kata-qemu-nvidia-gpu
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: gpus, namespace: default}
spec: {hard: {requests.nvidia.com/gpu: 8}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: none, resources: {limits: {nvidia.com/gpu: 2}}}]}
`)
	device := preflight{program, p.Kubeconfig(t, p.Config())}
	r, code := device.run(t, "--for", "dra", "--migrate", "nvidia.com/gpu")
	for question, want := range map[string]string{
		"the API server serves what the driver writes":   "yes",
		"every kubelet is new enough":                    "no PRE001",
		"the runtime gives containers CDI devices":       "no PRE005",
		"a RuntimeClass starts Kata VMs":                 "yes",
		"network policies are there":                     "unknown",
		"the driver's admission policies are in force":   "no PRE018",
		"devices are plugged before the VM starts":       "unknown",
		"extended resource names of device classes work": "yes",
		"no two classes have one extended resource name": "yes",
		"plugin and driver keep to nodes of their own":   "unknown",
		"only administrators decide about devices":       "yes",
		"images are named by digest":                     "unknown",
		"agents have no privilege that they do not need": "unknown",
		"the shim takes the devices of claims":           "unknown",
		"the feature gates are on":                       "unknown",
		"a VM has a root port for each device":           "unknown",
		"the nodes know its handler":                     "unknown",
		"metrics are scraped":                            "unknown",
		"the runtime looks where CDI specs are":          "unknown",
	} {
		if got := r.line(t, question); got != want {
			t.Errorf("%s: %s, want %s", question, got, want)
		}
	}
	if code != exit.Findings {
		t.Errorf("exit code %d", code)
	}
	moved := r.Migrate[0]
	if moved.Dependents != 1 || len(moved.Workloads) != 1 || moved.Workloads[0].Kind != "Deployment" {
		t.Errorf("%+v", moved)
	}
	p.CreateFile(t, filepath.Join("..", "..", "deploy", "kata-dra-driver", "admission.yaml"))
	p.CreateFile(t, filepath.Join("..", "..", "deploy", "kata-dra-driver", "daemonset.yaml"))
	p.CreateFile(t, filepath.Join("..", "..", "deploy", "kata-dra-driver", "networkpolicy.yaml"))
	r, _ = device.run(t, "--for", "dra")
	for question, want := range map[string]string{
		"network policies are there":                   "yes",
		"the driver's admission policies are in force": "yes",
		"images are named by digest":                   "no PRE013",
		"agents are not evicted before others":         "yes",
	} {
		if got := r.line(t, question); got != want {
			t.Errorf("with the driver's manifests: %s: %s, want %s", question, got, want)
		}
	}
}

// node makes a node's object, as its kubelet would.
func node(t *testing.T, p *plane.Plane, name, kubelet, runtime string) {
	t.Helper()
	nodes := p.Client().CoreV1().Nodes()
	n, err := nodes.Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.ContainerRuntimeVersion = kubelet, runtime
	_, err = nodes.UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
	must(t, err)
}
