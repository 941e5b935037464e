package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"kata-device-plugin/test/kubelet"
)

// lister connects to kubelet's PodResources API.
func (n *nicNode) lister() podresources.PodResourcesListerClient {
	n.t.Helper()
	conn, err := grpc.NewClient("unix://"+n.podResourcesSocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	n.must(err)
	n.t.Cleanup(func() { conn.Close() })
	return podresources.NewPodResourcesListerClient(conn)
}

// placed are the CDI names that Multus or Kata's shim would make, each with the NUMA nodes
// behind it.
func placed(devices []*podresources.ContainerDevices) []string {
	var all []string
	for _, d := range devices {
		var nodes []int64
		for _, node := range d.GetTopology().GetNodes() {
			nodes = append(nodes, node.GetID())
		}
		for _, id := range d.GetDeviceIds() {
			all = append(all, fmt.Sprint(d.GetResourceName(), "=", id, nodes))
		}
	}
	slices.Sort(all)
	return all
}

// TestNICPodResources: List, Get and GetAllocatableResources name the IDs that the plugin
// announced, shares and subfunctions too, each on its NUMA node unless the pool excludes it.
func TestNICPodResources(t *testing.T) {
	n := adapters(t)
	n.run()
	n.await("rdma/hca", "0000:65:00.7::0", "0000:65:00.7::1", "0000:65:00.7::2")
	allocatable := []string{
		"intel.com/acc=0000:f7:00.0[0]", "intel.com/cdev=0000:65:00.4[]", "intel.com/net=0000:65:00.2[1]", "intel.com/sf=mlx5_core.sf.4[1]",
		"intel.com/uio=0000:65:00.6[1]", "intel.com/vdpa=0000:65:00.5[1]", "intel.com/vfio=0000:65:00.3[1]", "nvidia.com/rdma=0000:65:00.7[1]",
		"rdma/hca=0000:65:00.7::0[1]", "rdma/hca=0000:65:00.7::1[1]", "rdma/hca=0000:65:00.7::2[1]",
	}
	client := n.lister()
	n.must(n.Kubelet.Await(n.ctx, func() bool { return len(n.Kubelet.Resources()) == 9 }))
	all, err := client.GetAllocatableResources(n.ctx, &podresources.AllocatableResourcesRequest{})
	n.must(err)
	if got := placed(all.GetDevices()); !slices.Equal(got, allocatable) {
		t.Errorf("allocatable %q\nwant %q", got, allocatable)
	}
	pod := kubelet.Pod("pod", "rdma/hca", 3)
	second := kubelet.Pod("second", "intel.com/vfio", 1).Spec.Containers[0]
	second.Name = "d"
	pod.Spec.Containers = append(pod.Spec.Containers, second)
	n.must(n.Kubelet.Admit(n.ctx, pod))
	list, err := client.List(n.ctx, &podresources.ListPodResourcesRequest{})
	n.must(err)
	get, err := client.Get(n.ctx, &podresources.GetPodResourcesRequest{PodNamespace: pod.Namespace, PodName: pod.Name})
	n.must(err)
	if len(list.GetPodResources()) != 1 {
		t.Fatalf("List has %v", list)
	}
	for name, r := range map[string]*podresources.PodResources{"List": list.GetPodResources()[0], "Get": get.GetPodResources()} {
		containers := r.GetContainers()
		if len(containers) != 2 || !slices.Equal(placed(containers[0].GetDevices()), allocatable[8:]) ||
			!slices.Equal(placed(containers[1].GetDevices()), allocatable[6:7]) {
			t.Errorf("%s has %v", name, containers)
		}
	}
}

// numa configures sriov-cpu so that each pool has something on both NUMA nodes. The HCA of node
// 0 lacks umad.
func (n *nicNode) numa() {
	n.must(n.Bind(n.address("0000:b1:00.5"), "vfio-pci"))
	n.configure(`{"resourceList": [
		{"resourceName": "vfio", "selectors": {"drivers": ["vfio-pci"], "pciAddresses": ["31:01.0", "31:11.0", "b1:00.4"]}},
		{"resourceName": "free", "excludeTopology": true, "selectors": {"drivers": ["vfio-pci"]}}],
		"configList": [
		{"resourceName": "hca", "sharesPerDevice": 2, "rdmaNodes": {"umad": "optional"}, "selectors": {"ifNames": ["ens2f0", "enp177s0f0np0"]}},
		{"resourceName": "anywhere", "sharesPerDevice": 2, "excludeTopology": true, "rdmaNodes": {"umad": "optional"}, "selectors": {"ifNames": ["ens2f0", "enp177s0f0np0"]}}]}`)
}

// TestNICTopology: the topology manager keeps devices and shares together by what the plugin
// says of them, or leaves them alone where the pool excludes that.
func TestNICTopology(t *testing.T) {
	for _, policy := range []string{"none", "best-effort", "restricted", "single-numa-node"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			n := newNICNode(t, sriovCPU(t))
			n.Options.Policy = policy
			n.numa()
			n.run()
			n.await("intel.com/vfio", "0000:31:01.0", "0000:31:11.0", "0000:b1:00.4")
			n.await("intel.com/free", "0000:31:01.2", "0000:31:11.2", "0000:b1:00.5")
			shares := []string{"0000:31:00.0::0", "0000:31:00.0::1", "0000:b1:00.0::0", "0000:b1:00.0::1"}
			n.await("rdma/hca", shares...)
			n.await("rdma/anywhere", shares...)
			for _, resource := range []string{"intel.com/vfio", "rdma/hca"} {
				if policy == "single-numa-node" {
					n.refused(resource, 3, "TopologyAffinityError")
				} else {
					n.Kubelet.Remove(n.admit(resource, 3))
				}
			}
			n.admit("intel.com/free", 3) // no policy keeps these apart
			n.admit("rdma/anywhere", 3)
			for _, resource := range []string{"intel.com/vfio", "rdma/hca"} {
				two := n.held(n.admit(resource, 2), resource)
				if policy != "none" && bus(two[0]) != bus(two[1]) {
					t.Errorf("of %s a pod got %v", resource, two)
				}
			}
		})
	}
}

// bus stands for the NUMA node of a device or share of sriov-cpu: 0000:31 is on 0, 0000:b1 on 1.
func bus(id string) string { return id[:len("0000:31")] }

// TestNICAligned: a container's device and share come from one NUMA node.
func TestNICAligned(t *testing.T) {
	n := newNICNode(t, sriovCPU(t))
	n.Options.Policy = "single-numa-node"
	n.numa()
	n.run()
	n.await("intel.com/vfio", "0000:31:01.0", "0000:31:11.0", "0000:b1:00.4")
	n.await("rdma/hca", "0000:31:00.0::0", "0000:31:00.0::1", "0000:b1:00.0::0", "0000:b1:00.0::1")
	both := func(name string, shares int64) *v1.Pod {
		pod := kubelet.Pod(name, "intel.com/vfio", 1)
		maps.Copy(pod.Spec.Containers[0].Resources.Limits, kubelet.Pod("", "rdma/hca", shares).Spec.Containers[0].Resources.Limits)
		return pod
	}
	seen := map[string]int{}
	for i := range 2 { // two shares each, so that each NUMA node has one of them
		pod := both(fmt.Sprint("pod", i), 2)
		n.must(n.Kubelet.Admit(n.ctx, pod))
		at := bus(n.held(pod, "intel.com/vfio")[0])
		for _, id := range n.held(pod, "rdma/hca") {
			if bus(id) != at {
				t.Errorf("a VF of %s and share %s", at, id)
			}
		}
		seen[at]++
	}
	if len(seen) != 2 {
		t.Errorf("the pods are on %v", seen)
	}
}

// TestNICClosest: kubelet asks the plugin which devices to take, and gets those of one PF.
func TestNICClosest(t *testing.T) {
	n := newNICNode(t, sriovCPU(t))
	pfs := []string{"0000:31:00.0", "0000:31:00.1", "0000:b1:00.0", "0000:b1:00.1"}
	for _, pf := range pfs {
		n.must(n.SetVFs(n.address(pf), 0, ""))
		n.must(n.SetVFs(n.address(pf), 7, "vfio-pci"))
	}
	n.configure(`{"resourceList": [{"resourceName": "vfio", "selectors": {"drivers": ["vfio-pci"]}}]}`)
	n.run()
	const resource = "intel.com/vfio"
	var all []string
	of := map[string]string{}
	for _, pf := range pfs {
		for _, vf := range n.VFs(n.address(pf)) {
			of[vf.String()] = pf
			all = append(all, vf.String())
		}
	}
	n.await(resource, all...)
	for i := range 8 { // two pods for each PF, of which it keeps one VF
		held := n.held(n.admit(resource, 3), resource)
		if of[held[0]] != of[held[1]] || of[held[1]] != of[held[2]] {
			t.Errorf("pod %d has %v of %s, %s and %s", i, held, of[held[0]], of[held[1]], of[held[2]])
		}
	}
	left := n.Kubelet.Allocatable(resource)
	if len(left) != 28 {
		t.Errorf("allocatable %v", left)
	}
	n.admit(resource, 4) // what is left, wherever it is
	n.refused(resource, 1, "UnexpectedAdmissionError")
}
