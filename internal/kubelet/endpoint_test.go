package kubelet

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// registrar is kubelet's registration service, as far as these tests need one that
// misbehaves. The module under test/ has the real one.
type registrar struct {
	pluginapi.UnimplementedRegistrationServer
	answer func(ctx context.Context, req *pluginapi.RegisterRequest) error
}

func (r registrar) Register(ctx context.Context, req *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	return &pluginapi.Empty{}, r.answer(ctx, req)
}

// listen serves kubelet.sock in dir.
func listen(t *testing.T, dir string, answer func(context.Context, *pluginapi.RegisterRequest) error) *grpc.Server {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(dir, SocketName))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	s := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(s, registrar{answer: answer})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { s.Stop(); <-done })
	return s
}

// endpoint is one that runs until the test ends.
type endpoint struct {
	*Endpoint
	dir string
	log *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newEndpoint(t *testing.T, changed func()) *endpoint {
	t.Helper()
	dir, err := os.MkdirTemp("", "k")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	e := &endpoint{dir: dir, log: &lockedBuffer{}}
	e.Endpoint = NewEndpoint(Config{
		Resource: "nvidia.com/gpu", Dir: dir, SocketPrefix: "kata-gpu",
		Allocate: func(context.Context, []string) (Answer, error) { return Answer{}, errors.New("not asked for here") },
		Prefer:   func(available, _ []string, size int) []string { return available[:size] },
		Changed:  changed,
		Log:      slog.New(slog.NewTextHandler(e.log, nil)),
	})
	e.Announce([]Device{{ID: "0000:41:00.0", Healthy: true, NUMA: 0}})
	return e
}

func (e *endpoint) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); e.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// TestKubeletRestartsInRegister: kubelet removes our socket and then takes ten seconds to
// find that out; the attempt is given up at once, and another is made with a new socket.
func TestKubeletRestartsInRegister(t *testing.T) {
	e := newEndpoint(t, func() {})
	asked := make(chan *pluginapi.RegisterRequest)
	listen(t, e.dir, func(ctx context.Context, req *pluginapi.RegisterRequest) error {
		asked <- req
		<-ctx.Done() // kubelet dials a socket that is not there
		return ctx.Err()
	})
	e.run(t)
	began := time.Now()
	var before string
	for range 3 {
		req := <-asked
		if req.Version != "v1beta1" || req.ResourceName != "nvidia.com/gpu" || req.Endpoint == before {
			t.Errorf("asked with %v", req)
		}
		before = req.Endpoint
		if err := os.Remove(filepath.Join(e.dir, req.Endpoint)); err != nil {
			t.Fatal(err)
		}
		e.Kick()
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("three attempts took %v", took)
	}
}

// TestRegisterRefused: a refusal is logged once, in kubelet's words, and tried again.
func TestRegisterRefused(t *testing.T) {
	e := newEndpoint(t, func() {})
	tries := make(chan struct{}, 100)
	listen(t, e.dir, func(context.Context, *pluginapi.RegisterRequest) error {
		tries <- struct{}{}
		return status.Error(codes.Unknown, "the ResourceName is invalid")
	})
	e.run(t)
	for range 3 {
		<-tries
	}
	if n := strings.Count(e.log.String(), "the ResourceName is invalid"); n != 1 {
		t.Errorf("logged %d times: %s", n, e.log)
	}
	if s := e.Status(); s.Registered || !strings.Contains(s.Reason, "register nvidia.com/gpu: ") {
		t.Errorf("status %+v", s)
	}
}

// TestHangUp: a kubelet that accepts us and hangs up is asked at a slowing pace.
func TestHangUp(t *testing.T) {
	e := newEndpoint(t, func() {})
	times := make(chan time.Time, 100)
	listen(t, e.dir, func(_ context.Context, req *pluginapi.RegisterRequest) error {
		times <- time.Now()
		conn, err := dial(filepath.Join(e.dir, req.Endpoint))
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			stream, err := pluginapi.NewDevicePluginClient(conn).ListAndWatch(context.Background(), &pluginapi.Empty{})
			if err == nil {
				_, err = stream.Recv()
			}
			_ = err // it hangs up, whatever it got
		}()
		return nil
	})
	e.run(t)
	first := <-times
	for range 4 {
		<-times
	}
	// The waits are 50, 100, 200 and 400 ms.
	if took := time.Since(first); took < 700*time.Millisecond {
		t.Errorf("five registrations in %v", took)
	}
}

// TestSlowKubelet: kubelet may take its time to open the stream.
func TestSlowKubelet(t *testing.T) {
	registered := make(chan struct{}, 100)
	e := newEndpoint(t, func() {
		select {
		case registered <- struct{}{}:
		default:
		}
	})
	requests := make(chan string, 10)
	listen(t, e.dir, func(_ context.Context, req *pluginapi.RegisterRequest) error {
		requests <- req.Endpoint
		return nil
	})
	e.run(t)
	socket := filepath.Join(e.dir, <-requests)
	if e.Status().Registered {
		t.Error("registered without a stream")
	}
	conn, err := dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	stream, err := pluginapi.NewDevicePluginClient(conn).ListAndWatch(t.Context(), &pluginapi.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := stream.Recv()
	if err != nil || len(list.Devices) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	for !e.Status().Registered {
		<-registered
	}
	if len(requests) > 0 {
		t.Error("registered again meanwhile")
	}
}

// TestLongDirectory: a path that no socket can have is an error that says so.
func TestLongDirectory(t *testing.T) {
	e := newEndpoint(t, func() {})
	e.cfg.Dir = filepath.Join(e.dir, strings.Repeat("d", 90-len(e.dir)))
	if err := os.Mkdir(e.cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	listen(t, e.dir, func(context.Context, *pluginapi.RegisterRequest) error { return nil })
	if err := os.Symlink(filepath.Join(e.dir, SocketName), filepath.Join(e.cfg.Dir, SocketName)); err != nil {
		t.Fatal(err)
	}
	// The socket's name is another one in each life; the reason must not be.
	first, second := e.life(t.Context(), identity{}), e.life(t.Context(), identity{})
	if first == nil || !strings.Contains(first.Error(), "107") || first.Error() != second.Error() {
		t.Errorf("got %v, then %v", first, second)
	}
}

func TestResponse(t *testing.T) {
	for _, c := range []struct {
		name    string
		devices []Device
		want    string
	}{
		{"none", nil, ""},
		{"all have a node", []Device{{"a", true, 0}, {"b", false, 1}}, "a Healthy [0] b Unhealthy [1] "},
		{"one has none", []Device{{"a", true, 0}, {"b", true, -1}}, "a Healthy b Healthy "},
		{"none has one", []Device{{"a", true, -1}}, "a Healthy "},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			for _, d := range response(c.devices).Devices {
				b.WriteString(d.ID + " " + d.Health + " ")
				if d.Topology != nil {
					b.WriteString("[" + string(rune('0'+d.Topology.Nodes[0].ID)) + "] ")
				}
			}
			if b.String() != c.want {
				t.Errorf("got %q, want %q", b.String(), c.want)
			}
		})
	}
}

// TestRefusal: kubelet shows the text to the pod's owner, so it names the device.
func TestRefusal(t *testing.T) {
	for kind, code := range map[RefusalKind]codes.Code{Unknown: codes.NotFound, Unhealthy: codes.FailedPrecondition, Malformed: codes.InvalidArgument} {
		err := error(&Refusal{Device: "0000:41:00.0", Reason: "gone", Kind: kind})
		if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), "0000:41:00.0: gone") {
			t.Errorf("%v: %v", kind, status.Convert(err))
		}
	}
}
