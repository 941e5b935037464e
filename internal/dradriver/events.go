package dradriver

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// Reasons of events.
const (
	reasonNotPrepared = "DevicesNotPrepared" // on the claim
	reasonReleased    = "DevicesReleased"    // on the node
	reasonDamaged     = "ClaimRecordDamaged" // on the node
	reasonNotOffered  = "DevicesNotOffered"  // on the node
)

// events tells people what they must know, where they look for it. The library leaves out what
// repeats, and gives up when the API server does not take it.
type events struct {
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
	node        corev1.ObjectReference
}

func newEvents(client kubernetes.Interface, component, node string) *events {
	b := record.NewBroadcaster()
	b.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return &events{
		broadcaster: b,
		recorder:    b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component, Host: node}),
		// As kubelet's own events have it: `kubectl describe node` looks for the name in the UID.
		node: corev1.ObjectReference{Kind: "Node", Name: node, UID: types.UID(node)},
	}
}

func (e *events) claim(c *resourceapi.ResourceClaim, reason, message string) {
	e.warn(c, reason, message)
}

func (e *events) onNode(reason, message string) { e.warn(&e.node, reason, message) }

func (e *events) warn(about runtime.Object, reason, message string) {
	e.recorder.Event(about, corev1.EventTypeWarning, reason, message)
}

func (e *events) close() { e.broadcaster.Shutdown() }
