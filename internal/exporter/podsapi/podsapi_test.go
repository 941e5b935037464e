package podsapi

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// kubelet serves pods as it has them: in the encoding of the API's own types.
type kubelet struct {
	pods.UnimplementedPodsServer
	answer [][]byte
}

func (k *kubelet) ListPods(context.Context, *pods.ListPodsRequest) (*pods.ListPodsResponse, error) {
	return &pods.ListPodsResponse{Pods: k.answer}, nil
}

func serve(t *testing.T, socket string, k *kubelet) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	must(t, err)
	s := grpc.NewServer()
	pods.RegisterPodsServer(s, k)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return func() {
		s.Stop()
		must(t, <-done)
	}
}

// encoded is a pod with much that is of no interest here.
func encoded(t testing.TB, namespace, name, uid string, phase corev1.PodPhase) []byte {
	t.Helper()
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(uid), GenerateName: "g-", Generation: 7,
			Labels: map[string]string{"name": "other"}, OwnerReferences: []metav1.OwnerReference{{Name: "owner", UID: "another"}},
		},
		Spec:   corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}, TerminationGracePeriodSeconds: new(int64(3))},
		Status: corev1.PodStatus{Phase: phase},
	}
	data, err := p.Marshal()
	must(t, err)
	return data
}

// TestPods: what is read is what the API's types say, and a client outlives kubelet.
func TestPods(t *testing.T) {
	dir, err := os.MkdirTemp("", "pods") // a socket's path is short
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	socket := filepath.Join(dir, "s")
	c := Dial(socket)
	t.Cleanup(func() { must(t, c.Close()) })
	for range 3 {
		if _, err := c.Pods(t.Context()); !errors.Is(err, ErrNone) {
			t.Fatalf("without a socket: %v", err)
		}
		k := &kubelet{answer: [][]byte{
			encoded(t, "a", "x", "1", corev1.PodRunning), encoded(t, "b", "x", "2", corev1.PodPending), encoded(t, "c", "x", "3", corev1.PodFailed),
			encoded(t, "d", "x", "4", corev1.PodSucceeded), encoded(t, "e", "x", "5", ""),
		}}
		stop := serve(t, socket, k)
		got, err := c.Pods(t.Context())
		if want := []Pod{{"a", "x", "1", false}, {"b", "x", "2", false}, {"c", "x", "3", true}, {"d", "x", "4", true}, {"e", "x", "5", false}}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v %v, want %v", got, err, want)
		}
		stop()
		must(t, os.WriteFile(socket, nil, 0o600)) // something is there, and nobody listens
		if _, err := c.Pods(t.Context()); err == nil || errors.Is(err, ErrNone) {
			t.Errorf("while nobody listens: %v", err)
		}
		must(t, os.Remove(socket))
	}
}

// TestRefused: what is no pod is an error, and nobody has an empty UID.
func TestRefused(t *testing.T) {
	whole := encoded(t, "a", "x", "1", corev1.PodRunning)
	for name, data := range map[string][]byte{
		"nothing": {}, "torn": whole[:len(whole)/2], "no UID": encoded(t, "a", "x", "", corev1.PodRunning), "no name": encoded(t, "a", "", "1", corev1.PodRunning), "text": []byte("pod"),
	} {
		if p, err := parse(data); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// FuzzParse: whatever the library can decode is read as the same.
func FuzzParse(f *testing.F) {
	f.Add(encoded(f, "ns", "name", "uid", corev1.PodRunning))
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parse(data)
		var p corev1.Pod
		if p.Unmarshal(data) != nil || err != nil {
			return
		}
		ended := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if want := (Pod{p.Namespace, p.Name, string(p.UID), ended}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	})
}
