package explain

import (
	"slices"
	"strings"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/manifest"
)

// The questions about what happens on the node. The API shows little of it.

// admitted: kubelet took the pod.
func (e *explainer) admitted(p *check.Workload) Step {
	if p.NodeName() == "" {
		return unknown("", "the pod has no node yet")
	}
	status := p.Object.Get("status")
	if reason := status.Get("reason").Text(); p.Phase() == "Failed" && check.Refused(reason, status.Get("message").Text()) {
		message := oneLine(status.Get("message").Text())
		s := no("POD008", "delete the pod, and let a controller make a new one", "kubelet has refused the pod: %s", reason)
		if meaning := check.Refusal(message); meaning != "" {
			s.Says += ": " + meaning
		}
		return s.because(seen(status.Get("message"), "kubelet: %s", message).since(status.Get("startTime")))
	}
	if at, ok := begun(p, anyone); ok {
		return yes("kubelet has begun with the pod").because(at)
	}
	if c := condition(p, "PodReadyToStartContainers"); c.Get("status").Text() == "True" {
		return yes("kubelet has made the pod's sandbox").because(seen(c, "PodReadyToStartContainers is True").since(c.Get("lastTransitionTime")))
	}
	if given := e.given(p, ""); len(given) > 0 {
		return yes("kubelet has devices for the pod").because(words(given)...)
	}
	if at, ok := waiting(p, anyone); ok {
		return yes("kubelet has begun with the pod").because(at)
	}
	if p.Phase() == "Failed" {
		return unknown("", "the pod has failed, and its status does not say whether kubelet had taken it").because(failure(p)...)
	}
	return unknown("the pod's status, or "+snapshotTells, "kubelet has not said anything of the pod")
}

// waiting is what kubelet says of a container that it has not made yet. It says so of pods that it has taken.
func waiting(p *check.Workload, asks asker) (Evidence, bool) {
	for _, c := range p.Containers {
		if v := statusOf(p, c.Name).Get("state", "waiting"); asks(c) && v.Exists() {
			return seen(v, "container %s waits: %s", c.Name, inWords(v)), true
		}
	}
	return Evidence{}, false
}

// failure is why a pod has failed, by its own word.
func failure(p *check.Workload) []Evidence {
	status := p.Object.Get("status")
	text := inWords(status)
	if text == "" {
		return nil
	}
	return []Evidence{seen(status, "the pod says: %s", text)}
}

// inWords are the reason and the message of a status, as far as it has them.
func inWords(status manifest.Value) string {
	said := []string{oneLine(status.Get("reason").Text()), oneLine(status.Get("message").Text())}
	return strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), ": ")
}

// asker says whether a container is one of those that a question is about.
type asker func(check.Container) bool

func anyone(check.Container) bool { return true }

// begun is what shows that one of the containers asked for runs or has run. The phase shows it of those whose
// states the input lacks: a pod is Running as soon as one of its containers is.
func begun(p *check.Workload, asks asker) (Evidence, bool) {
	waits := false
	for _, c := range p.Containers {
		if !asks(c) {
			continue
		}
		status := statusOf(p, c.Name)
		for _, v := range []manifest.Value{status.Get("state", "running"), status.Get("state", "terminated")} {
			if v.Exists() {
				return seen(v, "a container is %s", v.Key()).since(v.Get("startedAt")), true
			}
		}
		if v := status.Get("lastState", "terminated"); v.Exists() {
			return seen(v, "a container was terminated").since(v.Get("startedAt")), true
		}
		waits = waits || status.Get("state", "waiting").Exists()
	}
	if phase := p.Phase(); phase == "Running" && !waits || phase == "Succeeded" {
		return seen(p.Object.Get("status", "phase"), "the pod is %s", phase), true
	}
	return Evidence{}, false
}

func hasBegun(p *check.Workload) bool {
	_, ok := begun(p, anyone)
	return ok
}

// statusOf is what a pod's status says of a container.
func statusOf(p *check.Workload, container string) manifest.Value {
	for _, list := range []string{"containerStatuses", "initContainerStatuses"} {
		for s := range p.Object.Get("status", list).Each() {
			if s.Get("name").Text() == container {
				return s
			}
		}
	}
	return manifest.Value{}
}

// asks says whether a container wants the resource.
func (r *resource) asks(c check.Container) bool {
	return slices.ContainsFunc(slices.Concat(c.Limits, c.Requests), func(a check.Amount) bool { return a.Name == r.name })
}

// resolved: the container runtime found what the CDI names stand for. It starts no container before.
func (e *explainer) resolved(p *check.Workload, asks asker) Step {
	for _, c := range p.Containers {
		message := statusOf(p, c.Name).Get("state", "waiting", "message")
		if asks(c) && check.WithoutCDI(message.Text()) {
			return unresolvable(seen(message, "container %s: %s", c.Name, oneLine(message.Text())))
		}
	}
	if at, ok := begun(p, asks); ok {
		return yes("a container has been made, with all devices that it was given").because(at)
	}
	for _, h := range slices.Backward(e.events(p.Ref(), "Failed", "FailedCreatePodSandBox")) {
		if check.WithoutCDI(h.message) {
			return unresolvable(h.evidence)
		}
	}
	if p.Phase() == "Failed" {
		return unknown("", "the pod has failed, and its status has no container that asks for it").because(failure(p)...)
	}
	because := e.setbacks(p)
	if at, ok := waiting(p, asks); ok {
		because = append(because, at)
	}
	if len(because) > 0 {
		return unknown("the pod's events, or "+snapshotTells, "no container that asks for it has been made yet").because(because...)
	}
	return unknown("the pod's events, or "+snapshotTells, "no container that asks for it has been made yet, and nobody says why")
}

// setbacks is the last that kubelet has told of a container that is not made, for whatever reason.
func (e *explainer) setbacks(p *check.Workload) []Evidence {
	return evidenceOf(e.events(p.Ref(), "Failed", "FailedCreatePodSandBox", "FailedMount", "FailedAttachVolume", "NetworkNotReady",
		"FailedPrepareDynamicResources"))
}

func unresolvable(e Evidence) Step {
	k := finding.WithoutCDI()
	return no(k.ID, k.Remedy, "the container runtime does not find the CDI device").because(e)
}

// visible: nothing outside of the container tells, but that the device has fallen sick.
func (e *explainer) visible(p *check.Workload, name string) Step {
	for c := range p.Object.Get("status", "containerStatuses").Each() {
		for of := range c.Get("allocatedResourcesStatus").Each() {
			for d := range of.Get("resources").Each() {
				if d.Get("health").Text() == "Unhealthy" && (of.Get("name").Text() == name || strings.HasPrefix(of.Get("name").Text(), name+"/")) {
					return no("POD009", "look at the plugin or driver on the node for the reason", "the device is not healthy any more").
						because(seen(d, "container %s: %s is Unhealthy %s", c.Get("name").Text(), d.Get("resourceID").Text(), d.Get("message").Text()))
				}
			}
		}
	}
	switch phase := p.Phase(); {
	case phase == "Succeeded" || phase == "Failed":
		return Step{Verdict: NotNeeded, Says: "the pod has ended"}
	case !hasBegun(p):
		return unknown("", "no container has been made yet")
	}
	s := unknown("the container itself: kubectl exec -n "+p.Namespace+" "+p.Object.Name+" -- ls -l /dev/vfio",
		"only the container shows what is in it")
	return s.because(e.holds(p)...)
}
