//go:build !kubernetes134

package plane

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// image is the name of one that nobody pulls.
const image = "none"

// ClaimPod is a pod with one container, "c", and a claim made from a template, of which the
// container gets everything.
func ClaimPod(name, template string) *v1.Pod {
	pod := podOf(name)
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "claim", ResourceClaimTemplateName: &template}}
	pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "claim"}}
	return pod
}

// SharedPod is a pod with one container, "c", that uses a claim which others may use too.
func SharedPod(name, claim string) *v1.Pod {
	pod := podOf(name)
	pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "claim", ResourceClaimName: &claim}}
	pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "claim"}}
	return pod
}

// ExtendedPod is a pod with one container, "c", that asks for so many of a resource, as pods
// for device plugins do.
func ExtendedPod(name, res string, count int64) *v1.Pod {
	pod := podOf(name)
	list := v1.ResourceList{v1.ResourceName(res): *resource.NewQuantity(count, resource.DecimalSI)}
	pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Limits: list, Requests: list}
	return pod
}

func podOf(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: image}}},
	}
}

// On binds a pod to a node in the scheduler's way: by affinity, so that it allocates.
func On(pod *v1.Pod, node string) *v1.Pod {
	pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node}},
		}}},
	}}}
	return pod
}

// Pod creates a pod.
func (p *Plane) Pod(t testing.TB, pod *v1.Pod) *v1.Pod {
	t.Helper()
	created, err := p.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create pod %s: %v", pod.Name, err)
	}
	return created
}

// AwaitPending waits until the scheduler has said that no node fits, for a reason with some
// words in it.
func (p *Plane) AwaitPending(t testing.TB, pod *v1.Pod, words string) *v1.Pod {
	t.Helper()
	return p.AwaitPod(t, pod, "pending for "+words, func(now *v1.Pod) error {
		c := scheduled(now)
		if now.Spec.NodeName != "" || c.Status != v1.ConditionFalse || !strings.Contains(c.Message, words) {
			return fmt.Errorf("its node is %q, and the scheduler says: %s", now.Spec.NodeName, c.Message)
		}
		return nil
	})
}

// Delete asks for the end of a pod, as a user does. A node that runs its pods ends it.
func (p *Plane) Delete(t testing.TB, pod *v1.Pod) {
	t.Helper()
	p.remove(t, pod, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
}

// ForceDelete removes a pod from the API at once, whatever its node thinks.
func (p *Plane) ForceDelete(t testing.TB, pod *v1.Pod) {
	t.Helper()
	p.remove(t, pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
}

func (p *Plane) remove(t testing.TB, pod *v1.Pod, o metav1.DeleteOptions) {
	t.Helper()
	if err := p.client.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, o); err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("delete pod %s: %v", pod.Name, err)
	}
}
