//go:build !kubernetes134

package plane

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// report writes a pod's status, unless it says the same already.
func (w *worker) report(pod *v1.Pod, r *resident, phase v1.PodPhase) error {
	status := pod.Status.DeepCopy()
	status.Phase = phase
	ready := v1.ConditionFalse
	if phase == v1.PodRunning {
		ready = v1.ConditionTrue
	}
	setCondition(status, v1.PodCondition{Type: v1.PodReady, Status: ready})
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		s := v1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: phase == v1.PodRunning}
		if phase == v1.PodRunning {
			s.State.Running = &v1.ContainerStateRunning{StartedAt: r.started}
		} else {
			s.State.Terminated = &v1.ContainerStateTerminated{}
		}
		status.ContainerStatuses = append(status.ContainerStatuses, s)
	}
	w.manager.UpdateAllocatedResourcesStatus(w.log, pod, status)
	if apiequality.Semantic.DeepEqual(*status, pod.Status) {
		return nil
	}
	changed := pod.DeepCopy()
	changed.Status = *status
	_, err := w.client.CoreV1().Pods(pod.Namespace).UpdateStatus(w.ctx, changed, metav1.UpdateOptions{})
	return err
}

func setCondition(status *v1.PodStatus, condition v1.PodCondition) {
	i := slices.IndexFunc(status.Conditions, func(c v1.PodCondition) bool { return c.Type == condition.Type })
	if i < 0 {
		status.Conditions = append(status.Conditions, condition)
		return
	}
	if status.Conditions[i].Status != condition.Status {
		status.Conditions[i] = condition
	}
}
