//go:build node

package cluster

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/peer"
)

// alternatives is an example that ships.
const alternatives = "alternatives"

// draChoice: of the alternatives that a claim has, the first one for which there are devices is taken:
// two GPUs on one NUMA node where there is no better model, though the next two free ones are on two,
// and the better model as soon as some node has it.
func draChoice(c *cluster) {
	w := c.joinDRA("dra-choice", hgxH100)
	w.driverReady()
	c.template(alternatives)
	c.pod(peer.NewPod("three", gpu, 3))
	three := w.claimed("three")
	rest := slices.DeleteFunc(w.gpus(), func(id string) bool { return slices.Contains(three, id) })
	if w.function(rest[0]).NUMA == w.function(rest[1]).NUMA {
		c.t.Fatalf("the next free GPUs, %v, are on one NUMA node: nothing is shown", rest)
	}
	c.pod(claimPod("second-choice", alternatives))
	got := w.claimed("second-choice")
	if len(got) != 2 || w.function(got[0]).NUMA != w.function(got[1]).NUMA {
		c.t.Errorf("the second choice is %v, want two GPUs of one NUMA node", got)
	}
	c.requests("second-choice", "gpu/h100", "gpu/h100")
	c.pod(claimPod("second-again", alternatives))
	again := w.claimed("second-again")
	c.requests("second-again", "gpu/h100", "gpu/h100")
	for _, id := range slices.Concat(three, got) {
		if slices.Contains(again, id) {
			c.t.Errorf("%s is in two of %v, %v and %v", id, three, got, again)
		}
	}
	c.remove("second-again") // so that there are two on one NUMA node again

	better := c.joinDRA("dra-choice-better", "hgx-h200")
	better.driverReady()
	c.pod(claimPod("first-choice", alternatives))
	if pod := c.bound("first-choice"); pod.Spec.NodeName != better.Name() {
		c.t.Fatalf("the pod is on %s, want the node with the first alternative", pod.Spec.NodeName)
	}
	if got := better.claimed("first-choice"); len(got) != 1 {
		c.t.Errorf("the first choice is %v, want one GPU", got)
	}
	c.requests("first-choice", "gpu/h200")
}

// requests complains unless the devices of a pod are for these requests of its claim.
func (c *cluster) requests(name string, want ...string) {
	c.t.Helper()
	pod, err := c.Client().CoreV1().Pods(peer.Namespace).Get(c.ctx, name, metav1.GetOptions{})
	c.must(err)
	var got []string
	for _, r := range c.claimOf(pod).Status.Allocation.Devices.Results {
		got = append(got, r.Request)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		c.t.Errorf("pod %s has devices for the requests %v, want %v", name, got, want)
	}
}

// function is what is at an address.
func (w *worker) function(id string) sim.Function {
	w.t.Helper()
	all := w.Machine.Functions()
	at := slices.IndexFunc(all, func(f sim.Function) bool { return f.Address() == w.address(id) })
	if at < 0 {
		w.t.Fatalf("there is no function at %s", id)
	}
	return all[at]
}
