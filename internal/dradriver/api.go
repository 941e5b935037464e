package dradriver

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kata-device-plugin/internal/dra"
)

// api is what the driver asks the API server.
type api struct {
	client kubernetes.Interface
	node   string
}

// connect makes a client with a kubeconfig, or with the pod's service account where that is "".
// It does not talk to the API server yet.
func connect(kubeconfig, agent string) (kubernetes.Interface, error) {
	config, err := rest.InClusterConfig()
	if kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	config.UserAgent = agent
	// A pod may have many claims, and many pods come at once after a drain. The library's 5 a second
	// would let kubelet's calls time out.
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the API server: %w", err)
	}
	return client, nil
}

// claim reads a claim. It returns nil when there is none.
func (a *api) claim(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error) {
	c, err := a.client.ResourceV1().ResourceClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read claim %s/%s: %w", namespace, name, err)
	}
	return c, nil
}

// nodeState is what the node's object says.
type nodeState struct {
	uid         types.UID
	server      string           // the API server's version, "" where it did not say
	allocatable map[string]int64 // extended resources, by name
}

// state reads the node's object.
func (a *api) state(ctx context.Context) (nodeState, error) {
	n, err := a.client.CoreV1().Nodes().Get(ctx, a.node, metav1.GetOptions{})
	if err != nil {
		return nodeState{}, fmt.Errorf("read node %s: %w", a.node, err)
	}
	s := nodeState{uid: n.UID, allocatable: map[string]int64{}}
	// Everybody may ask for the version by default. Where that was taken away it stays unknown.
	version, err := discovery.ToServerVersionInterfaceWithContext(a.client.Discovery()).ServerVersionWithContext(ctx)
	if err == nil {
		s.server = version.GitVersion
		if version.EmulationMinor != "" { // it behaves as an older one
			s.server += " as " + version.EmulationMajor + "." + version.EmulationMinor
		}
	}
	for name, q := range n.Status.Allocatable {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
			s.allocatable[string(name)] = q.Value()
		}
	}
	return s, nil
}

// plugged says whether the node still has a number of devices from a device plugin that would be this
// driver's.
func (s nodeState) plugged(excluded []dra.Type) bool {
	return slices.ContainsFunc(dra.Types(), func(t dra.Type) bool {
		return !slices.Contains(excluded, t) && s.allocatable[lockOf(t)] > 0
	})
}
