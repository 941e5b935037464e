//go:build !kubernetes134

package explain

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kata-device-plugin/test/plane"
)

// furnish makes the nodes, the plugins and the drivers' devices, and the pods that have some.
func furnish(t *testing.T, p *plane.Plane) {
	t.Helper()
	addNode(t, p, "node-gpu", "gpu", nil, false, map[string][2]string{"demo.example/gpu": {"2", "2"}, "demo.example/free": {"4", "4"},
		"demo.example/zero": {"0", "0"}, "demo.example/sick": {"2", "0"}})
	addNode(t, p, "node-plain", "cpu", nil, false, nil)
	addNode(t, p, "node-tainted", "special", []v1.Taint{{Key: "dedicated", Value: "training", Effect: v1.TaintEffectNoSchedule}}, false,
		map[string][2]string{"demo.example/tainted": {"1", "1"}})
	addNode(t, p, "node-cordoned", "special", nil, true, map[string][2]string{"demo.example/cordoned": {"1", "1"}})
	p.Create(t, plugins)
	ready(t, p, "plugin-a", 1)
	ready(t, p, "nowhere", 0)
	p.Create(t, drivers)
	quota(t, p, "poor")
	holder := plane.ExtendedPod("holder", "demo.example/gpu", 2)
	p.AwaitBound(t, p.Pod(t, holder))
	p.AwaitBound(t, p.Pod(t, plane.SharedPod("owner", "taken")))
}

// addNode makes a node without a kubelet. Capacity and allocatable are those of a resource.
func addNode(t *testing.T, p *plane.Plane, name, pool string, taints []v1.Taint, cordoned bool, devices map[string][2]string) {
	t.Helper()
	nodes := p.Client().CoreV1().Nodes()
	n, err := nodes.Create(t.Context(), &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": pool}}}, metav1.CreateOptions{})
	if err == nil {
		n.Spec.Taints, n.Spec.Unschedulable = taints, cordoned // without the taint that admission gives a new one
		n, err = nodes.Update(t.Context(), n, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatalf("add node %s: %v", name, err)
	}
	capacity := v1.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110")}
	allocatable := capacity.DeepCopy()
	for key, count := range devices {
		capacity[v1.ResourceName(key)], allocatable[v1.ResourceName(key)] = resource.MustParse(count[0]), resource.MustParse(count[1])
	}
	n.Status.Capacity, n.Status.Allocatable = capacity, allocatable
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}
	if _, err = nodes.UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatalf("say what node %s has: %v", name, err)
	}
}

// ready says in the place of the DaemonSet controller how many pods a plugin has.
func ready(t *testing.T, p *plane.Plane, name string, pods int32) {
	t.Helper()
	plane.Await(t, "status of "+name, func(ctx context.Context) error {
		sets := p.Client().AppsV1().DaemonSets("kube-system")
		set, err := sets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		set.Status.DesiredNumberScheduled, set.Status.NumberReady, set.Status.CurrentNumberScheduled = pods, pods, pods
		if _, err = sets.UpdateStatus(ctx, set, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("write it: %w", err)
		}
		return nil
	})
}

// quota says in the place of the quota controller that a namespace may have no claim.
func quota(t *testing.T, p *plane.Plane, namespace string) {
	t.Helper()
	none := v1.ResourceList{"count/resourceclaims.resource.k8s.io": resource.MustParse("0")}
	quotas := p.Client().CoreV1().ResourceQuotas(namespace)
	q, err := quotas.Create(t.Context(), &v1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: v1.ResourceQuotaSpec{Hard: none}}, metav1.CreateOptions{})
	if err == nil {
		q.Status = v1.ResourceQuotaStatus{Hard: none, Used: none}
		_, err = quotas.UpdateStatus(t.Context(), q, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatalf("make a quota: %v", err)
	}
}

const plugins = `
apiVersion: v1
kind: Namespace
metadata: {name: other}
---
apiVersion: v1
kind: Namespace
metadata: {name: poor}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plugin-a, namespace: kube-system}
data:
  config.json: |
    {"resourceList": [{"resourceName": "vf_a", "selectors": {"drivers": ["iavf"]}}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: nowhere, namespace: kube-system}
data:
  config.json: |
    {"resourceList": [{"resourceName": "vf_c", "selectors": {"drivers": ["ice"]}}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin-a, namespace: kube-system}
spec:
  selector: {matchLabels: {app: plugin-a}}
  template:
    metadata: {labels: {app: plugin-a}}
    spec:
      containers: [{name: c, image: sriov-network-device-plugin, volumeMounts: [{name: config, mountPath: /etc/pcidp}]}]
      volumes: [{name: config, configMap: {name: plugin-a}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nowhere, namespace: kube-system}
spec:
  selector: {matchLabels: {app: nowhere}}
  template:
    metadata: {labels: {app: nowhere}}
    spec:
      nodeSelector: {pool: absent}
      containers: [{name: c, image: sriov-network-device-plugin, volumeMounts: [{name: config, mountPath: /etc/pcidp}]}]
      volumes: [{name: config, configMap: {name: nowhere}}]
`

const drivers = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: demo.example}
spec: {selectors: [{cel: {expression: "device.driver == 'demo.example'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: tainted.example}
spec: {selectors: [{cel: {expression: "device.driver == 'tainted.example'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: single.example}
spec:
  extendedResourceName: single.example/device
  selectors: [{cel: {expression: "device.driver == 'single.example'"}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: empty.example}
spec: {selectors: [{cel: {expression: "device.driver == 'empty.example'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: demo}
spec:
  driver: demo.example
  nodeName: node-gpu
  pool: {name: node-gpu, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: one, attributes: {model: {string: a}}}
  - {name: two, attributes: {model: {string: b}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: tainted}
spec:
  driver: tainted.example
  nodeName: node-gpu
  pool: {name: node-gpu, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: one, taints: [{key: unhealthy, value: HST020, effect: NoSchedule}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: single}
spec:
  driver: single.example
  nodeName: node-gpu
  pool: {name: node-gpu, generation: 1, resourceSliceCount: 1}
  devices: [{name: one}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: taken}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: single.example}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: theirs, namespace: other}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: demo.example}}]}}
`
