package dradriver

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"kata-device-plugin/internal/journal"
)

// server is an API server that has slices, and refuses what it is told to.
type server struct {
	*fake.Clientset
	refuses atomic.Bool   // what is written
	silent  chan struct{} // no list is answered until it is closed, nil for answers at once
}

func newServer() *server {
	s := &server{Clientset: fake.NewClientset()}
	s.PrependReactor("create", "resourceslices", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if s.refuses.Load() {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "resourceslices"}, "s", errors.New("policy"))
		}
		slice := a.(k8stesting.CreateAction).GetObject().(*resourceapi.ResourceSlice)
		slice.Name = slice.GenerateName + "x"
		return false, nil, nil
	})
	s.PrependReactor("list", "resourceslices", func(k8stesting.Action) (bool, runtime.Object, error) {
		if s.silent != nil {
			<-s.silent
		}
		return false, nil, nil
	})
	return s
}

func (s *server) slices(t *testing.T) []resourceapi.ResourceSlice {
	t.Helper()
	list, err := s.ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	return list.Items
}

func poolOf(product string) resourceslice.Pool {
	return resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: []resourceapi.Device{gpuOf(product)}}}}
}

func gpuOf(product string) resourceapi.Device {
	return resourceapi.Device{
		Name: "gpu-a", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"productName": {StringValue: &product}},
	}
}

// publishing runs a test with a publisher.
func publishing(t *testing.T, test func(t *testing.T, s *server, p *publisher)) {
	t.Helper()
	s := newServer()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := newPublisher(ctx, s, "n", func(error, string) {})
	defer p.stop()
	test(t, s, p)
}

// comes waits for what the library's goroutines write.
func (s *server) comes(t *testing.T, what string, is func() bool) {
	t.Helper()
	w, err := s.ResourceV1().ResourceSlices().Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer w.Stop()
	late := time.After(20 * time.Second)
	for !is() {
		select {
		case <-w.ResultChan():
		case <-late:
			t.Fatal(what + " does not come")
		}
	}
}

// agreesNow checks.
func (p *publisher) agreesNow(t *testing.T) bool {
	t.Helper()
	_, err := p.check(t.Context(), time.Now(), true)
	return err == nil && p.inStep()
}

// TestPublishDoesNotWait: while slices cannot be listed, publish returns, and what was published last
// is what is written when they can.
func TestPublishDoesNotWait(t *testing.T) {
	publishing(t, func(t *testing.T, s *server, p *publisher) {
		s.silent = make(chan struct{})
		p.publish(poolOf("a"), "uid")
		p.publish(poolOf("b"), "uid")
		if p.inStep() {
			t.Error("in step before anything was written")
		}
		close(s.silent)
		s.comes(t, "agreement", func() bool { return p.agreesNow(t) })
		if all := s.slices(t); len(all) != 1 || *all[0].Spec.Devices[0].Attributes["productName"].StringValue != "b" {
			t.Errorf("%+v", all)
		}
	})
}

// TestStopWhileSilent: stop ends a writer that is not up yet, and what is stopped is not checked.
func TestStopWhileSilent(t *testing.T) {
	publishing(t, func(t *testing.T, s *server, p *publisher) {
		s.silent = make(chan struct{})
		p.publish(poolOf("a"), "uid")
		p.stop()
		close(s.silent)
		if published, err := p.check(t.Context(), time.Now(), true); published != 0 || err != nil || p.inStep() {
			t.Errorf("%d slices, %v, in step %v", published, err, p.inStep())
		}
	})
}

// TestNodeMadeAnew: after another node has the name, slices belong to that one.
func TestNodeMadeAnew(t *testing.T) {
	publishing(t, func(t *testing.T, s *server, p *publisher) {
		p.publish(poolOf("a"), "uid-1")
		s.comes(t, "agreement", func() bool { return p.agreesNow(t) })
		for _, slice := range s.slices(t) { // as the garbage collector does it
			must(t, s.ResourceV1().ResourceSlices().Delete(t.Context(), slice.Name, metav1.DeleteOptions{}))
		}
		p.publish(poolOf("a"), "uid-2")
		s.comes(t, "a slice of the new node", func() bool {
			all := s.slices(t)
			return len(all) == 1 && all[0].OwnerReferences[0].UID == "uid-2"
		})
	})
}

// TestRefused: what the API server refuses is a difference that is told once, for which writing
// begins anew, and which keeps the driver from being ready.
func TestRefused(t *testing.T) {
	publishing(t, func(t *testing.T, s *server, p *publisher) {
		s.refuses.Store(true)
		var log bytes.Buffer
		j := journal.New(slog.New(slog.NewTextHandler(&log, nil)))
		p.publish(poolOf("a"), "uid")
		writers := map[*writer]bool{}
		now := time.Now()
		for range 60 {
			now = now.Add(time.Second)
			_, err := p.check(t.Context(), now, true)
			j.Once("ResourceSlices at the API server", err)
			writers[p.writing] = true
			if p.inStep() {
				t.Fatal("in step")
			}
		}
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
		if len(writers) != 4 {
			t.Errorf("%d writers in a minute", len(writers))
		}
		s.refuses.Store(false)
		s.comes(t, "agreement", func() bool { return p.agreesNow(t) })
	})
}

// TestOlderAnswer: what was published while the API server answered is held against the next answer.
func TestOlderAnswer(t *testing.T) {
	publishing(t, func(t *testing.T, s *server, p *publisher) {
		p.publish(poolOf("a"), "uid")
		s.comes(t, "agreement", func() bool { return p.agreesNow(t) })
		s.PrependReactor("list", "resourceslices", func(k8stesting.Action) (bool, runtime.Object, error) {
			p.publish(poolOf("b"), "uid")
			return false, nil, nil
		})
		if _, err := p.check(t.Context(), time.Now(), true); err != nil || !p.inStep() || !p.differs.IsZero() {
			t.Errorf("%v, in step %v", err, p.inStep())
		}
	})
}

// TestCompare: names, attributes, capacity and taints, but for the time of a taint.
func TestCompare(t *testing.T) {
	taint := resourceapi.DeviceTaint{Key: "k", Value: "HST020", Effect: resourceapi.DeviceTaintEffectNoSchedule}
	now := metav1.Now()
	stamped := taint
	stamped.TimeAdded = &now
	with := func(d resourceapi.Device, taints ...resourceapi.DeviceTaint) resourceapi.Device {
		d.Taints = taints
		return d
	}
	big := gpuOf("a")
	big.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {}}
	other := resourceapi.Device{Name: "gpu-b"}
	type devices = []resourceapi.Device
	for _, c := range []struct {
		name             string
		there, published devices
		tainted          bool
		want             string // the device of the first difference, "" for none
	}{
		{"none", nil, devices{}, true, ""},
		{"same", devices{other, gpuOf("a")}, devices{gpuOf("a"), other}, true, ""},
		{"attribute", devices{gpuOf("a")}, devices{gpuOf("b")}, true, "gpu-a"},
		{"no attributes", devices{{Name: "gpu-a"}}, devices{gpuOf("a")}, true, "gpu-a"},
		{"capacity", devices{gpuOf("a")}, devices{big}, true, "gpu-a"},
		{"one is missing", devices{gpuOf("a")}, devices{gpuOf("a"), other}, true, "gpu-b"},
		{"one too many", devices{gpuOf("a"), other}, devices{gpuOf("a")}, true, "gpu-b"},
		{"no taint", devices{gpuOf("a")}, devices{with(gpuOf("a"), taint)}, true, "gpu-a"},
		{"no taint, as the server drops them", devices{gpuOf("a")}, devices{with(gpuOf("a"), taint)}, false, ""},
		{"time of a taint", devices{with(gpuOf("a"), stamped)}, devices{with(gpuOf("a"), taint)}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := compare(c.there, byName(c.published), c.tainted)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), " is at "+c.want+":") {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
