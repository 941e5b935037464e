package gather

import (
	"errors"
	"fmt"
	"os"
	"time"

	"kata-device-plugin/internal/podresources"
)

// young is for how long after its start was seen kubelet may not know all of its pods. By the socket's own
// time a clock that was set since would make a young kubelet old.
const young = time.Minute

// errRestarted says that nobody can tell which kubelet an answer is of.
var errRestarted = errors.New("kubelet was restarted while it was asked")

// starting keeps answers out that kubelet gives too early: its service answers before it has read from the
// API server which pods there are, and has none then, or some. Of pods that had devices a moment
// ago that would say that their devices are free.
type starting struct {
	socket string
	// settled is when the kubelet was started that has had every pod back.
	settled time.Time
	// seen is when the kubelet of the last question was first asked, and of which one that is.
	seen, of time.Time
}

// life is when the kubelet was started that serves the socket, zero where that is not known. It makes its
// socket anew each time.
func (s *starting) life() time.Time {
	info, err := os.Stat(s.socket)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// check says why an answer cannot be relied on. life is what there was before the question.
func (s *starting) check(life time.Time, before, answer []podresources.Pod, now time.Time) error {
	if !s.life().Equal(life) {
		return errRestarted
	}
	if life.IsZero() || life.Equal(s.settled) {
		return nil
	}
	if !life.Equal(s.of) {
		s.of, s.seen = life, now
	}
	if now.Sub(s.seen) < young {
		if pod, missing := lost(before, answer); missing {
			return fmt.Errorf("ask kubelet who has which device: it was started less than %s ago, and does not have pod %s/%s back yet",
				young, pod.Namespace, pod.Name)
		}
	}
	s.settled = life
	return nil
}

// lost is a pod that had devices, and is not in the answer with any.
func lost(before, answer []podresources.Pod) (podresources.Pod, bool) {
	there := make(map[[2]string]bool, len(answer))
	for i := range answer {
		if holds(&answer[i]) {
			there[[2]string{answer[i].Namespace, answer[i].Name}] = true
		}
	}
	for i := range before {
		if p := &before[i]; holds(p) && !there[[2]string{p.Namespace, p.Name}] {
			return *p, true
		}
	}
	return podresources.Pod{}, false
}

func holds(p *podresources.Pod) bool {
	for i := range p.Containers {
		if len(p.Containers[i].Devices) > 0 || len(p.Containers[i].Claims) > 0 {
			return true
		}
	}
	return false
}
