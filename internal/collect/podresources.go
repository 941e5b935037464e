package collect

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/podresources"
)

// podResources asks kubelet who has which device, and which it knows of. These are the only
// questions that are asked of anybody.
func (n *node) podResources(ctx context.Context) {
	dir := path.Join(n.Kubelet, "pod-resources")
	if !slices.Contains(n.list(dir), podresources.SocketName) {
		return
	}
	e := n.examine(path.Join(dir, podresources.SocketName))
	if e == nil || e.Kind != capture.Socket {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	client := podresources.Dial(n.real(e.Path))
	began := time.Now()
	pods, err1 := client.Pods(ctx)
	slices.SortFunc(pods, func(a, b podresources.Pod) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	n.answer(capture.PodsPath, capture.Pods{TookMilliseconds: since(began), Pods: pods}, err1)
	began = time.Now()
	devices, err2 := client.Allocatable(ctx)
	n.answer(capture.AllocatablePath, capture.Allocatable{TookMilliseconds: since(began), Devices: devices}, err2)
	err := errors.Join(err1, err2, client.Close())
	e.Unread, e.State = false, capture.Accepted
	switch {
	case err == nil:
	case strings.Contains(err.Error(), syscall.ECONNREFUSED.Error()): // gRPC keeps the text alone
		e.State = capture.Refused
	default:
		e.State = "no answer"
	}
	n.c.Add(*e)
	n.miss(e.Path, n.told(err))
}

func since(began time.Time) int64 { return time.Since(began).Milliseconds() }

// answer notes what kubelet said, or why it said nothing.
func (n *node) answer(name string, v any, err error) {
	e := capture.Entry{Path: name, Kind: capture.File}
	if err == nil {
		e.Text, err = indented(v)
	}
	if err != nil {
		e.Failure = capture.FailureOf("ask", n.told(err))
	}
	n.c.Add(e)
}
