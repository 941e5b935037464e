package e2e

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestNICReload: pools come and go with the file, and pods keep what they have.
func TestNICReload(t *testing.T) {
	n, pods := occupied(t)
	n.configure(strings.Replace(everything, `{"resourceName": "vdpa", "selectors": {"vdpaType": "vhost"}},`,
		`{"resourceName": "vdpa", "selectors": {"vdpaType": "vhost"}}, {"resourceName": "acc-too", "deviceType": "accelerator", "selectors": {"devices": ["0d5d"]}},`, 1))
	n.await("intel.com/acc-too", "0000:f8:00.0")
	n.all()
	n.same(pods)
	n.admit("intel.com/acc-too", 1)

	n.configure(`{"resourceList": [{"resourceName": "vfio", "selectors": {"driver": ["vfio-pci"]}}]}`)
	n.awaitLog(`"level":"ERROR"`, "CFG001", "config.json:1:", "resourceList[0].selectors.driver")
	n.awaitLog("not ready", "CFG001")
	n.restartKubelet() // while the file is bad
	n.all()
	n.same(pods)

	// Only the pool of the VFs on VFIO is left, and the pods of the others keep their devices.
	n.configure(`{"resourceList": [{"resourceName": "vfio", "selectors": {"drivers": ["vfio-pci"], "pfNames": ["ens1f0np0#1"]}}]}`)
	n.await(nicNet)
	n.await(nicRDMA)
	n.await(nicHCA)
	n.await(nicVFIO, "0000:65:00.3")
	for _, resource := range []string{nicNet, nicRDMA, nicHCA} {
		pod := pods.pods[resource]
		for _, id := range n.held(pod, resource) {
			if health := n.health(pod, resource, id); health != v1.ResourceHealthStatusUnhealthy {
				t.Errorf("the status of a pod with %s of a removed pool says %s", resource, health)
			}
		}
		capacity, allocatable, shown := n.Kubelet.Devices(resource)
		if capacity == 0 || allocatable != 0 || !shown {
			t.Errorf("%s has capacity %d, allocatable %d, shown %v", resource, capacity, allocatable, shown)
		}
		n.refused(resource, 1, "UnexpectedAdmissionError")
	}
	n.awaitLog("unhealthy", "0000:65:00.2", "HST041")
	n.configure(everything)
	n.all()
	n.same(pods)
}

// TestNICRemovedWhileDown: a pool is removed while no plugin runs, and a pod has a device of
// it. The pod keeps it.
func TestNICRemovedWhileDown(t *testing.T) {
	n, pods := occupied(t)
	n.must(n.Plugin.Kill())
	n.gone()
	n.configure(`{"resourceList": [{"resourceName": "net", "selectors": {"pfNames": ["ens1f0np0#0"]}}]}`)
	n.restarted()
	n.await(nicNet, "0000:65:00.2")
	n.holds(pods.pods[nicVFIO], nicVFIO, "0000:65:00.3")
	n.configure(everything)
	n.all()
	n.same(pods)
}

// TestNICRenamed: a pool gets another name while a pod has its device, which is not handed out
// under the new name before the pod has ended, by no life of the plugin.
func TestNICRenamed(t *testing.T) {
	const dpdk = "intel.com/dpdk"
	n, pods := occupied(t)
	n.configure(strings.Replace(everything, `"vfio"`, `"dpdk"`, 1))
	held := func() {
		t.Helper()
		n.await(nicVFIO)
		if err := n.Kubelet.Await(n.ctx, func() bool { c, a, _ := n.Kubelet.Devices(dpdk); return c == 1 && a == 0 }); err != nil {
			t.Fatal(err)
		}
		n.holds(pods.pods[nicVFIO], nicVFIO, "0000:65:00.3")
		n.refused(dpdk, 1, "UnexpectedAdmissionError")
	}
	held()
	n.awaitLog("unhealthy", dpdk, "0000:65:00.3", "HST042", nicVFIO)
	n.must(n.Plugin.Kill())
	n.gone()
	n.restarted()
	n.await(nicNet, "0000:65:00.2")
	held()
	n.restartKubelet()
	n.await(nicNet, "0000:65:00.2")
	held()

	n.Kubelet.Remove(pods.pods[nicVFIO])
	n.await(nicCdev, "0000:65:00.4")
	n.admit(nicCdev, 1) // kubelet brings its record up to date with the next allocation
	n.await(dpdk, "0000:65:00.3")
	n.holds(n.admit(dpdk, 1), dpdk, "0000:65:00.3")
}

// TestNICRebound: a VF is unbound and bound again while a pod has it.
func TestNICRebound(t *testing.T) {
	n, pods := occupied(t)
	pod, a := pods.pods[nicVFIO], n.address("0000:65:00.3")
	for _, driver := range []string{"", "mlx5_core"} {
		n.must(n.Unbind(a))
		if driver != "" {
			n.must(n.Bind(a, driver)) // no inotify tells of it
			n.happened()
		}
		n.await(nicVFIO)
		if health := n.health(pod, nicVFIO, a.String()); health != v1.ResourceHealthStatusUnhealthy {
			t.Errorf("on driver %q the pod's status says %s", driver, health)
		}
		if capacity, _, _ := n.Kubelet.Devices(nicVFIO); capacity != 1 {
			t.Errorf("capacity %d", capacity)
		}
		n.holds(pod, nicVFIO, a.String())
		n.refused(nicVFIO, 1, "UnexpectedAdmissionError")
		if driver != "" {
			n.must(n.Unbind(a))
		}
		n.must(n.Bind(a, "vfio-pci"))
		n.await(nicVFIO, a.String())
		if health := n.health(pod, nicVFIO, a.String()); health != v1.ResourceHealthStatusHealthy {
			t.Errorf("bound again, the pod's status says %s", health)
		}
	}
	n.same(pods)
}

// TestNICSetVFs: the VFs of a PF go while pods have some, and come back.
func TestNICSetVFs(t *testing.T) {
	n := newNICNode(t, sriovCPU(t))
	n.configure(`{"resourceList": [{"resourceName": "vfio", "selectors": {"drivers": ["vfio-pci"], "pfNames": ["ens2f0", "ens2f1"]}}]}`)
	n.run()
	n.await(nicVFIO, "0000:31:01.0", "0000:31:01.2", "0000:31:11.0", "0000:31:11.2")
	pod := n.admit(nicVFIO, 4)
	pf := n.address("0000:31:00.0")
	n.must(n.SetVFs(pf, 0, ""))
	n.happened()
	n.await(nicVFIO, "0000:31:11.0", "0000:31:11.2")
	if capacity, _, _ := n.Kubelet.Devices(nicVFIO); capacity != 4 {
		t.Errorf("capacity %d", capacity)
	}
	for id, want := range map[string]v1.ResourceHealthStatus{"0000:31:01.0": v1.ResourceHealthStatusUnhealthy, "0000:31:11.0": v1.ResourceHealthStatusHealthy} {
		if health := n.health(pod, nicVFIO, id); health != want {
			t.Errorf("%s: the pod's status says %s", id, health)
		}
	}
	n.awaitLog("unhealthy", "0000:31:01.0", "HST032")
	if _, err := n.Resolve(nicVFIO + "=0000:31:01.0"); err == nil {
		t.Error("the CDI spec names a VF that has left")
	}
	// A restart of kubelet brings back what the plugin has announced, and not what has left.
	n.Options.Running = []*v1.Pod{pod}
	n.restartKubelet()
	n.await(nicVFIO, "0000:31:11.0", "0000:31:11.2")

	n.must(n.SetVFs(pf, 6, "vfio-pci"))
	n.happened()
	n.await(nicVFIO, "0000:31:01.0", "0000:31:01.1", "0000:31:01.2", "0000:31:01.3", "0000:31:01.4", "0000:31:01.5", "0000:31:11.0", "0000:31:11.2")
	n.holds(pod, nicVFIO, "0000:31:01.0", "0000:31:01.2", "0000:31:11.0", "0000:31:11.2")
	if health := n.health(pod, nicVFIO, "0000:31:01.0"); health != v1.ResourceHealthStatusHealthy {
		t.Errorf("back again, the pod's status says %s", health)
	}
	n.admit(nicVFIO, 4)
	n.refused(nicVFIO, 1, "UnexpectedAdmissionError")
}

// TestNICHostInUse: what begins to carry the host's traffic is handed out no more.
func TestNICHostInUse(t *testing.T) {
	n := adapters(t)
	n.run()
	n.await(nicNet, "0000:65:00.2")
	n.must(n.AddLink("bond0", "bond"))
	n.SetMaster("ens1f0v0", "bond0")
	n.AddDefaultRoute("bond0", "inet6")
	n.happened()
	n.await(nicNet)
	n.awaitLog("HST006", "0000:65:00.2", "ens1f0v0", "bond0")
	n.refused(nicNet, 1, "UnexpectedAdmissionError")
	n.RemoveDefaultRoutes()
	n.happened()
	n.await(nicNet, "0000:65:00.2")
	n.admit(nicNet, 1)
}
