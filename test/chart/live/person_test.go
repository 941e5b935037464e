//go:build node

package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kata-device-plugin/test/peer"
	"kata-device-plugin/test/peer/wire"
)

// command is kubectl-device as people have it, which `make e2e-chart` has built before.
const command = "../../../bin/kubectl-device"

// equip gives the node kubectl-device, and a kubeconfig of the admin.
func (c *cluster) equip() {
	c.t.Helper()
	config := c.Config()
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"peer": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"peer": {Cluster: "peer", AuthInfo: "admin"}},
		CurrentContext: "peer",
	})
	c.must(err)
	program, err := os.ReadFile(command)
	c.must(err)
	c.must(os.WriteFile(c.node.Path(wire.StateDir+"/admin"), kubeconfig, 0o600))
	c.must(os.WriteFile(c.node.Path(wire.StateDir+"/kubectl-device"), program, 0o700)) //nolint:gosec // it is to be run
}

// device is what kubectl-device prints. That it has found something is no error here.
func (c *cluster) device(args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	text, err := c.node.Run(ctx, wire.StateDir+"/kubectl-device", append(args, "--kubeconfig="+wire.StateDir+"/admin")...)
	if text == "" {
		c.must(err)
	}
	return text
}

// trainPod asks for a GPU and for a NIC by a name, and attaches the network of the NICs.
func trainPod(nic string) *v1.Pod {
	pod := peer.NewPod("train", gpu, 1)
	pod.Annotations = map[string]string{"k8s.v1.cni.cncf.io/networks": "fabric"}
	pod.Spec.Containers[0].Resources.Limits[v1.ResourceName(nic)] = resource.MustParse("1")
	return pod
}

// claimant makes a pod with a claim of one GPU.
func (c *cluster) claimant() {
	c.t.Helper()
	const name = "claimant"
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name}}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{
		Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.vfio.katacontainers.io"},
	}}
	_, err := c.Client().ResourceV1().ResourceClaimTemplates(peer.Namespace).Create(c.t.Context(), template, metav1.CreateOptions{})
	c.must(err)
	pod := peer.NewPod(name, gpu, 0)
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "devices", ResourceClaimTemplateName: &template.Name}}
	pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Claims: []v1.ResourceClaim{{Name: "devices"}}}
	c.create(pod)
}

// claimantGone removes that pod, and its template, which nobody else would.
func (c *cluster) claimantGone() {
	c.t.Helper()
	c.remove("claimant")
	templates := c.Client().ResourceV1().ResourceClaimTemplates(peer.Namespace)
	c.must(templates.Delete(c.t.Context(), "claimant", metav1.DeleteOptions{}))
}

func (c *cluster) create(pod *v1.Pod) {
	c.t.Helper()
	_, err := c.Client().CoreV1().Pods(peer.Namespace).Create(c.t.Context(), pod, metav1.CreateOptions{})
	c.must(err)
}

// remove removes a pod and waits until it has gone.
func (c *cluster) remove(name string) {
	c.t.Helper()
	pods := c.Client().CoreV1().Pods(peer.Namespace)
	c.must(pods.Delete(c.t.Context(), name, metav1.DeleteOptions{}))
	c.await("the end of "+name, func(ctx context.Context) error {
		list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err == nil && len(list.Items) > 0 {
			err = errors.New("it is there")
		}
		return err
	})
}

// allocatable waits until the API server shows these numbers.
func (c *cluster) allocatable(want map[string]int) {
	c.t.Helper()
	c.await("devices of the node", func(ctx context.Context) error {
		node, err := c.Client().CoreV1().Nodes().Get(ctx, c.node.Name(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		for name, count := range want {
			if got := node.Status.Allocatable[v1.ResourceName(name)]; got.Value() != int64(count) {
				err = errors.Join(err, fmt.Errorf("%s of %s are allocatable, want %d", got.String(), name, count))
			}
		}
		return err
	})
}

// published waits until the slices of the node have so many devices; none is no slice.
func (c *cluster) published(want int) {
	c.t.Helper()
	c.await("slices of the node", func(ctx context.Context) error {
		list, err := c.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: "spec.driver=vfio.katacontainers.io"})
		if err != nil {
			return err
		}
		count := 0
		for i := range list.Items {
			count += len(list.Items[i].Spec.Devices)
		}
		if count != want || want == 0 && len(list.Items) > 0 {
			return fmt.Errorf("%d slices have %d devices, want %d", len(list.Items), count, want)
		}
		return nil
	})
}

func networkResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "k8s.cni.cncf.io", Version: "v1", Resource: "network-attachment-definitions"}
}

// networks makes the kind of networks that Multus brings along, and one network.
func (c *cluster) networks() {
	c.t.Helper()
	of := networkResource()
	kind := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", of.Resource+"."+of.Group)
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	kind.Object["spec"] = map[string]any{
		"group": of.Group, "scope": "Namespaced",
		"names": map[string]any{"plural": of.Resource, "singular": "network-attachment-definition", "kind": "NetworkAttachmentDefinition"},
		"versions": []any{map[string]any{
			"name": of.Version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": anything},
		}},
	}
	kinds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	_, err := c.dynamic().Resource(kinds).Create(c.t.Context(), kind, metav1.CreateOptions{})
	c.must(err)
	c.await("the kind of networks", func(ctx context.Context) error {
		_, err := c.dynamic().Resource(of).List(ctx, metav1.ListOptions{})
		return err
	})
	c.network(fabric)
}

func (c *cluster) dynamic() dynamic.Interface {
	c.t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	c.must(err)
	return client
}

func object(version, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetName(name)
	return o
}

// awaitObjects waits until there are just these objects.
func (c *cluster) awaitObjects(want []string) {
	c.t.Helper()
	c.await("all objects to be gone", func(context.Context) error {
		if now := c.objects(); !slices.Equal(now, want) {
			return fmt.Errorf("there are %s, want %s", strings.Join(now, " "), strings.Join(want, " "))
		}
		return nil
	})
}
