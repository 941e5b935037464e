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
	// noted says what those who give devices have noted on disk, which is all that there is to hold the
	// first answer of all against.
	noted noted
	// proc is procfs, which says for how long the machine has been up.
	proc string
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
		if what := s.unnamed(life, answer, now); what != "" {
			return fmt.Errorf("ask kubelet who has which device: it was started less than %s ago, and does not yet name a container for %s",
				young, what)
		}
	}
	s.settled = life
	return nil
}

// booting is for how long after its start a machine may set its clock.
const booting = 5 * time.Minute

// unnamed is something that is noted as given and that the first answer of all has for no container, "" where
// there is nothing. It counts only where kubelet has just started, since notes of pods that have ended stay: by the
// time of the socket, which a clock that was set back puts into the future, or because the machine has.
func (s *starting) unnamed(life time.Time, answer []podresources.Pod, now time.Time) string {
	if !s.settled.IsZero() || now.Sub(life) >= young && uptime(s.proc) >= booting {
		return ""
	}
	return s.noted.unnamed(answer, now)
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
