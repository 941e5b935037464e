package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"

	"kata-device-plugin/internal/sim"

	"kata-device-plugin/test/harness"
	"kata-device-plugin/test/kubelet"
)

// stage is the node that the demo plays on.
type stage struct {
	*harness.Node
	platform sim.Platform
	dir      string // of the binary
	log      *lockedBuffer
	acts     int
	pod      *v1.Pod
}

func newStage(ctx context.Context, p sim.Platform) (*stage, error) {
	dir, err := sim.Hold("", "kata-demo.")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the plugin: %w", err)
	}
	s := &stage{platform: p, dir: dir, log: &lockedBuffer{}}
	binary, err := harness.BuildPlugin(ctx, dir)
	if err == nil {
		s.Node, err = harness.NewNode(p, binary, s.log)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

func (s *stage) close(showLog bool) error {
	err := errors.Join(s.Node.Close(), os.RemoveAll(s.dir))
	if showLog {
		s.title("The plugin's log")
		fmt.Print(s.log.String())
	}
	return err
}

func (s *stage) title(format string, args ...any) {
	s.acts++
	fmt.Printf("\n%d. %s\n", s.acts, fmt.Sprintf(format, args...))
}

func say(format string, args ...any) { fmt.Printf("   "+format+"\n", args...) }

// play is the demo from beginning to end.
func (s *stage) play(ctx context.Context) error {
	fmt.Printf("%s, simulated below %s\n", s.platform.Title, s.Dir)
	acts := []func(context.Context) error{s.begin}
	if s.platform.GPUs > 0 {
		acts = append(acts, s.allocate, s.unbind, s.restart)
	}
	for _, act := range append(acts, s.end) {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return nil
}

// begin starts both sides.
func (s *stage) begin(ctx context.Context) error {
	s.title("kubelet's device manager and the plugin start")
	if err := s.StartKubelet(ctx); err != nil {
		return err
	}
	if err := s.StartPlugin(ctx); err != nil {
		return err
	}
	if err := s.AwaitAll(ctx); err != nil {
		return err
	}
	if err := s.Kubelet.Await(ctx, func() bool { return strings.Contains(s.log.String(), `"msg":"ready"`) }); err != nil {
		return err
	}
	s.status()
	return nil
}

// status prints what kubelet advertises.
func (s *stage) status() {
	say("%-22s %8s %11s", "kubelet advertises", "capacity", "allocatable")
	names := s.Kubelet.Resources()
	for _, name := range names {
		capacity, allocatable, _ := s.Kubelet.Devices(name)
		say("%-22s %8d %11d   %s", name, capacity, allocatable, strings.Join(s.Kubelet.Allocatable(name), " "))
	}
	if len(names) == 0 {
		say("nothing, which is right for this node")
	}
}

// allocate runs an allocation through kubelet, and resolves what comes out of it.
func (s *stage) allocate(ctx context.Context) error {
	n := min(4, s.platform.GPUs)
	s.title("A pod asks for %s: %d", harness.GPU, n)
	s.pod = kubelet.Pod("train", harness.GPU, int64(n))
	if err := s.Kubelet.Admit(ctx, s.pod); err != nil {
		return err
	}
	names, nodes, err := s.Kubelet.RunOptions(ctx, s.pod, 0)
	if err != nil {
		return err
	}
	say("kubelet hands these CDI names to the container runtime and to Kata, and")
	say("%s says what they stand for:", s.Roots.CDI)
	for _, name := range names {
		found, err := s.Resolve(name)
		if err != nil {
			return err
		}
		say("  %s -> %s", name, strings.Join(found, " "))
		if len(found) != 1 || !slices.Contains(nodes, found[0]) {
			return fmt.Errorf("%s resolves to %v, kubelet was told %v", name, found, nodes)
		}
	}
	return nil
}

// unbind takes a device away that no pod holds.
func (s *stage) unbind(ctx context.Context) error {
	if len(s.free()) == 0 {
		s.Kubelet.Remove(s.pod)
		s.pod = nil
		say("the pod ends, so that there is a free GPU to go on with")
	}
	free := s.free()
	id := free[len(free)-1]
	s.title("The host unbinds the free GPU %s (%s)", id, s.Cdevs()[id])
	for _, f := range s.Functions() {
		if f.Address().String() == id {
			if err := s.Unbind(f.Address()); err != nil {
				return err
			}
		}
	}
	if err := s.AwaitDevices(ctx, harness.GPU, s.GPUs()); err != nil {
		return err
	}
	if _, err := s.Resolve(harness.GPU + "=" + id); err == nil {
		return fmt.Errorf("%s is unbound and still resolves", id)
	}
	s.status()
	say("%s stays announced, as unhealthy, and is in no CDI spec any more", id)
	return nil
}

// free are the GPUs that the pod does not hold.
func (s *stage) free() []string {
	if s.pod == nil {
		return s.GPUs()
	}
	held := s.Kubelet.Allocated(s.pod, "c", harness.GPU)
	return slices.DeleteFunc(s.GPUs(), func(id string) bool { return slices.Contains(held, id) })
}

// restart ends kubelet as a restart of its service does, and starts it again.
func (s *stage) restart(ctx context.Context) error {
	s.title("kubelet restarts: its socket and ours are gone")
	if err := s.Kubelet.Stop(); err != nil {
		return err
	}
	if err := s.StartKubelet(ctx); err != nil {
		return err
	}
	capacity, allocatable, _ := s.Kubelet.Devices(harness.GPU)
	say("right after the start: capacity %d, allocatable %d", capacity, allocatable)
	if err := s.AwaitAll(ctx); err != nil {
		return err
	}
	s.status()
	say("the plugin, still process %d, has registered again", s.Plugin.PID())
	return nil
}

// end stops the plugin as the removal of its pod does.
func (s *stage) end(ctx context.Context) error {
	s.title("The plugin is told to stop (SIGTERM)")
	code, took, err := s.Plugin.Terminate(ctx)
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("the plugin ended with exit code %d", code)
	}
	say("it ended with exit code 0 after %d ms; its CDI specs stay for pods that are being created", took.Milliseconds())
	return nil
}

// lockedBuffer collects what several goroutines write.
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
