// Package kubelet speaks kubelet's device plugin API v1beta1 (kubelet 1.31 to 1.37)
// for one resource: it serves, proves that it serves, registers, and does so again
// whenever kubelet has gone or come back.
package kubelet

import (
	"context"
	"fmt"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Device is one device as kubelet is told of it.
type Device struct {
	ID      string
	Healthy bool
	// NUMA is the NUMA node, or negative when it is unknown. Topology is sent for all
	// devices of a list or for none: with a mixed list kubelet admits no container
	// that asks for more devices than have a node (topology_hints.go).
	NUMA int
}

// Answer is what a container gets for its devices.
type Answer struct {
	CDI   []string          // qualified CDI device names
	Nodes []Node            // each once
	Env   map[string]string // environment variables
}

// Node is a character device.
type Node struct{ Host, Container, Permissions string }

// Config is what an Endpoint needs to know.
type Config struct {
	// Resource is the extended resource name.
	Resource string
	// Dir is kubelet's device plugin directory.
	Dir string
	// SocketPrefix begins the names of our sockets, for example "kata-gpu". What
	// begins so and is a socket belongs to earlier lives of this program.
	SocketPrefix string
	// Allocate answers for the devices of one container. An error is a *Refusal, or the
	// context's.
	Allocate func(ctx context.Context, ids []string) (Answer, error)
	// Prefer chooses size of the available devices. It cannot fail: kubelet rejects
	// the pod when this hint is an error.
	Prefer func(available, must []string, size int) []string
	// Changed is called after every change of Status. It must not block.
	Changed func()
	Log     *slog.Logger
}

// Refusal is the reason why devices are not handed out.
type Refusal struct {
	Device string
	Reason string
	Kind   RefusalKind
}

// RefusalKind is a class of refusals.
type RefusalKind uint8

// The classes.
const (
	Unknown   RefusalKind = iota // no such device
	Unhealthy                    // a device that must not be handed out now
	Malformed                    // a request that makes no sense
)

func (r *Refusal) Error() string {
	if r.Device == "" {
		return r.Reason
	}
	return fmt.Sprintf("device %s: %s", r.Device, r.Reason)
}

// GRPCStatus gives the refusal the code that fits its class.
func (r *Refusal) GRPCStatus() *status.Status {
	code := codes.InvalidArgument
	switch r.Kind {
	case Unknown:
		code = codes.NotFound
	case Unhealthy:
		code = codes.FailedPrecondition
	case Malformed:
	}
	return status.New(code, r.Error())
}

// response renders a list for kubelet.
func response(devices []Device) *pluginapi.ListAndWatchResponse {
	topology := true
	for _, d := range devices {
		topology = topology && d.NUMA >= 0
	}
	r := &pluginapi.ListAndWatchResponse{Devices: make([]*pluginapi.Device, 0, len(devices))}
	for _, d := range devices {
		dev := &pluginapi.Device{ID: d.ID, Health: pluginapi.Unhealthy}
		if d.Healthy {
			dev.Health = pluginapi.Healthy
		}
		if topology {
			dev.Topology = &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: int64(d.NUMA)}}}
		}
		r.Devices = append(r.Devices, dev)
	}
	return r
}
