package gather

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"kata-device-plugin/internal/exporter/podsapi"
	"kata-device-plugin/internal/nodestate"
	"kata-device-plugin/internal/podresources"
)

const (
	// answerTime is how long kubelet may take for one answer.
	answerTime = 5 * time.Second
	// uidsEvery is how often kubelet is asked for the UIDs of pods of which nothing is new: the
	// answer has all of each pod in it.
	uidsEvery = 30 * time.Second
)

// Kubelet keeps what kubelet says who has which device. Ask is for one goroutine, the rest for
// any.
type Kubelet struct {
	client   *podresources.Client
	api      *podsapi.Client // nil where nobody wants UIDs
	starting starting

	mu          sync.Mutex
	pods        nodestate.Reading[[]podresources.Pod]
	allocatable nodestate.Reading[[]podresources.Device]
	uids        nodestate.Reading[[]nodestate.PodUID]
	took        time.Duration
}

// NewKubelet makes one. Nothing is connected yet.
func NewKubelet(c Config) *Kubelet {
	socket := filepath.Join(c.Roots.PodResources, podresources.SocketName)
	k := &Kubelet{client: podresources.Dial(socket), took: -1, starting: starting{
		socket: socket, noted: noted{devicePlugins: c.Roots.DevicePlugins, claims: c.claimsDir()}, proc: c.Roots.Proc,
	}}
	if c.UIDs {
		k.api = podsapi.Dial(filepath.Join(c.Kubelet, podsapi.Socket))
	}
	return k
}

// Close ends the connections.
func (k *Kubelet) Close() error {
	err := k.client.Close()
	if k.api != nil {
		err = errors.Join(err, k.api.Close())
	}
	return err
}

// Ask asks everything, and says whether kubelet has answered.
func (k *Kubelet) Ask(ctx context.Context, clock func() time.Time) bool {
	began, life := clock(), k.starting.life()
	pods, podsErr := within(ctx, k.client.Pods)
	podsAt := clock()
	if podsErr == nil {
		podsErr = k.starting.check(life, k.pods.Value, pods, podsAt)
	}
	devices, devicesErr := within(ctx, k.client.Allocatable)
	devicesAt := clock()
	k.mu.Lock()
	changed := !reflect.DeepEqual(pods, k.pods.Value)
	k.pods.Took(pods, podsErr, podsAt)
	k.allocatable.Took(devices, devicesErr, devicesAt)
	if podsErr == nil && devicesErr == nil {
		k.took = devicesAt.Sub(began)
	}
	due := changed || k.uids.Err != nil || devicesAt.Sub(k.uids.At) >= uidsEvery
	k.mu.Unlock()
	answered := podsErr == nil && devicesErr == nil
	if k.api == nil {
		k.mu.Lock()
		k.uids.Absent(devicesAt)
		k.mu.Unlock()
		return answered
	}
	if due && podsErr == nil { // a kubelet that has no pods yet has no UIDs either
		answered = k.askUIDs(ctx, clock) && answered
	}
	return answered
}

// askUIDs asks for the pods' UIDs. A kubelet without that API is no fault.
func (k *Kubelet) askUIDs(ctx context.Context, clock func() time.Time) bool {
	pods, err := within(ctx, k.api.Pods)
	all := make([]nodestate.PodUID, 0, len(pods))
	for _, p := range pods {
		all = append(all, nodestate.PodUID(p))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if errors.Is(err, podsapi.ErrNone) {
		k.uids.Absent(clock())
		return true
	}
	k.uids.Took(all, err, clock())
	return err == nil
}

func within[T any](ctx context.Context, question func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return question(ctx)
}

// Read copies what kubelet said last.
func (k *Kubelet) Read(to *nodestate.Facts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	to.Pods, to.Allocatable, to.PodUIDs = k.pods, k.allocatable, k.uids
}

// Took is how long kubelet took for its last answers, below 0 before the first.
func (k *Kubelet) Took() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.took
}
