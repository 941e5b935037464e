//go:build !kubernetes134

package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

func TestMain(m *testing.M) {
	Quiet()
	os.Exit(m.Run())
}

// gpu is the resource that the class of GPUs stands for.
const gpu = "example.com/gpu"

const objects = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  extendedResourceName: example.com/gpu
  selectors:
  - cel: {expression: 'device.driver == "fake.katacontainers.io" && device.attributes["fake.katacontainers.io"].type == "gpu"'}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: nic}
spec:
  selectors:
  - cel: {expression: 'device.driver == "fake.katacontainers.io" && device.attributes["fake.katacontainers.io"].type == "nic"'}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: pair}
spec:
  spec:
    devices:
      requests:
      - {name: nic, exactly: {deviceClassName: nic}}
      - {name: gpu, exactly: {deviceClassName: gpu}}
      constraints:
      - {requests: [gpu, nic], matchAttribute: resource.kubernetes.io/pcieRoot}
`

// rights are what a driver with a node-bound token needs, and the policy that holds it to
// its node.
const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: driver}
rules:
- {apiGroups: [resource.k8s.io], resources: [resourceslices], verbs: [get, list, watch, create, update, patch, delete]}
- {apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [get]}
- {apiGroups: [""], resources: [nodes], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: driver}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: driver}
subjects: [{kind: ServiceAccount, name: driver, namespace: default}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: driver}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [resource.k8s.io], apiVersions: [v1], operations: [CREATE, UPDATE, DELETE], resources: [resourceslices]}
  matchConditions:
  - {name: driver, expression: 'request.userInfo.username == "system:serviceaccount:default:driver"'}
  variables:
  - {name: node, expression: 'request.userInfo.extra[?"authentication.kubernetes.io/node-name"][0].orValue("")'}
  - {name: slice, expression: '(request.operation == "DELETE" ? oldObject : object).spec.?nodeName.orValue("")'}
  validations:
  - {expression: 'variables.node != "" && variables.node == variables.slice', message: not the node of this driver}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: driver}
spec: {policyName: driver, validationActions: [Deny]}
`

// TestPlane has one cluster for all its parts, each of which has a node to itself.
func TestPlane(t *testing.T) {
	p := Start(t, Options{})
	p.Create(t, objects)
	p.Create(t, rights)
	for _, part := range []struct {
		name string
		run  func(*testing.T, *Plane)
	}{
		{"extended", testExtended},
		{"aligned", testAligned},
		{"podresources", testPodResources},
		{"restart", testRestart},
		{"wipe", testWipe},
		{"unchanged", testUnchanged},
		{"token", testToken},
		{"health", testHealth},
		{"eviction", testEviction},
		{"run", testRun},
		{"reboot", testReboot},
		{"cut", testCut},
		{"strict", testStrict},
		{"restore", testRestore},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, p) })
	}
}

// testExtended: a pod made for device plugins gets devices of the driver, through kubelet
// and the library that containerd uses; where a device plugin offers the resource, it does not.
func testExtended(t *testing.T, p *Plane) {
	n := p.Node(t, "extended", NodeOptions{})
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(4))
	d.ready(t)
	pod := p.AwaitBound(t, p.Pod(t, On(ExtendedPod("extended", gpu, 2), n.Name)))
	if err := n.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	names, err := n.CDIDevices(pod, "c")
	if err != nil || len(names) != 2 {
		t.Fatalf("CDI devices %v, %v, want 2", names, err)
	}
	nodes, err := Inject(n.CDI, names)
	if want := []string{"/dev/vfio/devices/gpu-0", "/dev/vfio/devices/gpu-1"}; err != nil || !slices.Equal(nodes, want) {
		t.Errorf("the container has %v, %v, want %v", nodes, err, want)
	}
	more := p.Pod(t, On(ExtendedPod("extended-more", gpu, 3), n.Name))
	p.AwaitPending(t, more, "cannot allocate all claims")
	p.ForceDelete(t, more)
	// The scheduler counts the pod above as well against what the plugin offers.
	n.SetAllocatable(t, gpu, 4)
	n.AwaitSeen(t)
	plugin := p.AwaitBound(t, p.Pod(t, On(ExtendedPod("extended-plugin", gpu, 2), n.Name)))
	if plugin.Status.ExtendedResourceClaimStatus != nil {
		t.Error("a pod has a claim on a node where a device plugin offers the resource")
	}
	p.ForceDelete(t, pod)
	if err := n.Unprepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if nodes, err := Inject(n.CDI, names); err == nil {
		t.Errorf("%v still resolves to %v", names, nodes)
	}
}

// testAligned: of a half used board the pair on one root is found, and each container gets
// its part.
func testAligned(t *testing.T, p *Plane) {
	n := p.Node(t, "aligned", NodeOptions{})
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(2))
	d.ready(t)
	p.AwaitBound(t, p.Pod(t, On(ExtendedPod("aligned-gpu", gpu, 1), n.Name)))
	pod := On(ClaimPod("aligned", "pair"), n.Name)
	pod.Spec.Containers[0].Resources.Claims[0].Request = "gpu"
	pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{
		Name: "n", Image: image, Resources: v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "claim", Request: "nic"}}},
	})
	pod = p.AwaitBound(t, p.Pod(t, pod))
	if _, got := allocated(t, p, pod); !slices.Equal(got, []string{"gpu=gpu-1", "nic=nic-1"}) {
		t.Errorf("allocated %v, want what is on the free root", got)
	}
	if err := n.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for container, device := range map[string]string{"c": "gpu-1", "n": "nic-1"} {
		names, err := n.CDIDevices(pod, container)
		if err != nil || len(names) != 1 || !strings.HasSuffix(names[0], device) {
			t.Errorf("container %s gets %v, %v, want %s", container, names, err, device)
		}
	}
	p.AwaitPending(t, p.Pod(t, On(ClaimPod("aligned-more", "pair"), n.Name)), "cannot allocate all claims")
}

// testUnchanged: the same devices from a new driver are no write.
func testUnchanged(t *testing.T, p *Plane) {
	n := p.Node(t, "unchanged", NodeOptions{})
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(4))
	before := d.ready(t)
	written := mine(p.Writes(t, "resourceslices"), n)
	if len(written) != 1 || written[0].Verb != "create" || written[0].Code != 201 {
		t.Errorf("wrote %v, want one creation", written)
	}
	d.helper.Stop()
	d = startDriver(t, n, p.Config())
	d.publish(t, pairs(4))
	d.publish(t, pairs(3)) // and a change, to know that the first was looked at
	p.AwaitSlices(t, driverName, n.Name, "smaller", func(list []resourceapi.ResourceSlice) error {
		if len(list) != 1 || len(list[0].Spec.Devices) != 6 {
			return fmt.Errorf("there are %d", len(list))
		}
		return nil
	})
	if after := mine(p.Writes(t, "resourceslices"), n); len(after) != 2 || after[1].Verb != "update" {
		t.Errorf("wrote %v, want a creation and an update", after)
	}
	if before[0].UID != p.Slices(t, driverName, n.Name)[0].UID {
		t.Error("the slice is another one")
	}
}

// mine are the writes of a node's driver.
func mine(writes []Write, n *Node) (list []Write) {
	for _, w := range writes {
		if w.Agent == driverName+"/"+n.Name {
			list = append(list, w)
		}
	}
	return list
}

// testToken: a token that is bound to a pod names the node, a driver can work with it and
// nothing more, and a policy holds it to its node.
func testToken(t *testing.T, p *Plane) {
	n := p.Node(t, "token", NodeOptions{})
	other := p.Node(t, "token-other", NodeOptions{})
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig(t, p.Agent(t, "default", "driver", n.Name)))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := self.Status.UserInfo.Extra[NodeNameExtra]; len(got) != 1 || got[0] != n.Name {
		t.Errorf("the token's node is %v, want %s", got, n.Name)
	}
	d := startDriver(t, n, config)
	d.publish(t, pairs(2))
	d.ready(t)
	pod := p.AwaitBound(t, p.Pod(t, On(ClaimPod("token", "pair"), n.Name)))
	if err := n.Prepare(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	slice := p.Slices(t, driverName, n.Name)[0].DeepCopy()
	slice.ObjectMeta = metav1.ObjectMeta{GenerateName: "foreign-"}
	slice.Spec.NodeName, slice.Spec.Pool.Name = new(other.Name), other.Name
	// A policy is in force a moment after it was created.
	Await(t, "the policy to deny a foreign slice", func(ctx context.Context) error {
		_, err := client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), "not the node of this driver") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
	impostor, err := kubernetes.NewForConfig(p.ConfigFor("system:serviceaccount:default:driver", nil, map[string][]string{NodeNameExtra: {other.Name}}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := impostor.ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Errorf("with the extra of the other node: %v", err)
	}
	if _, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("list pods: %v, want it forbidden", err)
	}
}

// testStrict: a misspelt field is the test's mistake.
func testStrict(t *testing.T, p *Plane) {
	for name, text := range map[string]string{
		"unknown":   "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: x}, spec: {selector: []}}",
		"duplicate": "{apiVersion: v1, kind: Namespace, metadata: {name: x, name: y}}",
		"kind":      "{apiVersion: v1, kind: Nothing, metadata: {name: x}}",
	} {
		if _, err := p.create(t.Context(), text); err == nil {
			t.Errorf("%s: created", name)
		}
	}
}

// TestEmulated: older servers drop what they do not know, and the helper says so.
func TestEmulated(t *testing.T) {
	for version, want := range map[string]struct{ taints, extended bool }{
		"1.34": {false, false}, "1.35": {false, false}, "1.36": {true, true}, "1.37": {true, true},
	} {
		t.Run(version, func(t *testing.T) {
			p := Start(t, Options{Emulate: version})
			p.Create(t, objects)
			n := p.Node(t, "emulated", NodeOptions{})
			d := startDriver(t, n, p.Config())
			devices := pairs(1)
			devices[0].Taints = []resourceapi.DeviceTaint{{Key: driverName + "/unhealthy", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
			d.publish(t, devices)
			if got := d.ready(t)[0].Spec.Devices[0].Taints != nil; got != want.taints {
				t.Errorf("taints kept: %v, want %v", got, want.taints)
			}
			class, err := p.Client().ResourceV1().DeviceClasses().Get(t.Context(), "gpu", metav1.GetOptions{})
			if err != nil || (class.Spec.ExtendedResourceName != nil) != want.extended {
				t.Errorf("extended resource of the class: %v, %v, want it kept: %v", class.Spec.ExtendedResourceName, err, want.extended)
			}
			Await(t, "what the driver is told", func(context.Context) error {
				var dropped *resourceslice.DroppedFieldsError
				told := slices.ContainsFunc(d.errors(), func(err error) bool { return errors.As(err, &dropped) })
				if told == want.taints {
					return fmt.Errorf("told of dropped fields: %v", d.errors())
				}
				return nil
			})
			// The other parts have the gates too: a claim works everywhere, and where the taint
			// is known the scheduler minds it.
			pod := p.Pod(t, ClaimPod("emulated", "pair"))
			if want.taints {
				p.AwaitPending(t, pod, "cannot allocate all claims")
				return
			}
			if err := n.Prepare(t.Context(), p.AwaitBound(t, pod)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestGates: a gate changes what a version does.
func TestGates(t *testing.T) {
	p := Start(t, Options{Emulate: "1.35", Gates: map[string]bool{"DRAExtendedResource": true}})
	p.Create(t, objects)
	n := p.Node(t, "gates", NodeOptions{})
	d := startDriver(t, n, p.Config())
	d.publish(t, pairs(1))
	d.ready(t)
	pod := p.AwaitBound(t, p.Pod(t, ExtendedPod("gates", gpu, 1)))
	if _, got := allocated(t, p, pod); len(got) != 1 {
		t.Errorf("allocated %v, want one device", got)
	}
}
