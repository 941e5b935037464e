// Package podsapi asks kubelet which pods there are (API k8s.io/kubelet/pkg/apis/pods/v1alpha1, on
// by default since kubelet 1.37). It is the only one of kubelet's sockets that tells a pod's UID.
// Of a pod nothing is read beside its names and whether it has ended.
package podsapi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protowire"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// Socket is where kubelet serves the API, below its root directory.
const Socket = "pods-api/pods-api.sock"

// maxAnswer is what a node with the most and the longest pods stays below.
const maxAnswer = 32 << 20

// ErrNone says that this kubelet does not serve the API.
var ErrNone = errors.New("kubelet has no Pods API")

// Pod is what is read of a pod.
type Pod struct {
	Namespace, Name, UID string
	// Ended says that its containers have, and that none is started again.
	Ended bool
}

// Client keeps one connection. It is for one goroutine.
type Client struct {
	socket string
	conn   *grpc.ClientConn // nil while there is none
}

// Dial makes a client of a socket. Nothing is connected yet.
func Dial(socket string) *Client { return &Client{socket: socket} }

// Pods are the pods that kubelet knows, those that have ended too. The error is ErrNone where there
// is no socket.
func (c *Client) Pods(ctx context.Context) ([]Pod, error) {
	if _, err := os.Stat(c.socket); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	all, err := c.list(ctx)
	if err != nil {
		// A connection that has failed would be tried again later and later.
		return nil, fmt.Errorf("ask kubelet for its pods: %w", errors.Join(err, c.Close()))
	}
	return all, nil
}

func (c *Client) list(ctx context.Context) ([]Pod, error) {
	if c.conn == nil {
		conn, err := grpc.NewClient("unix://"+c.socket,
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
		if err != nil {
			return nil, err
		}
		c.conn = conn
	}
	answer, err := pods.NewPodsClient(c.conn).ListPods(ctx, &pods.ListPodsRequest{})
	if err != nil {
		return nil, err
	}
	all := make([]Pod, 0, len(answer.GetPods()))
	for _, data := range answer.GetPods() {
		p, err := parse(data)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Close ends the connection.
func (c *Client) Close() error {
	if c.conn == nil {
		return nil
	}
	conn := c.conn
	c.conn = nil
	return conn.Close()
}

// The numbers of fields in k8s.io/api/core/v1 and k8s.io/apimachinery/pkg/apis/meta/v1
// (generated.proto). To decode a whole pod would take the API's types into the program.
const (
	podMetadata   protowire.Number = 1
	podStatus     protowire.Number = 3
	statusPhase   protowire.Number = 1
	metaName      protowire.Number = 1
	metaNamespace protowire.Number = 3
	metaUID       protowire.Number = 5
)

// parse reads the metadata of a pod, and its phase.
func parse(data []byte) (p Pod, err error) {
	err = fields(data, func(n protowire.Number, value []byte) error {
		switch n {
		case podMetadata:
			return fields(value, p.name)
		case podStatus:
			return fields(value, p.phase)
		}
		return nil
	})
	if err == nil && (p.Name == "" || p.UID == "") {
		err = errors.New("a pod without a name or UID")
	}
	if err != nil {
		return Pod{}, fmt.Errorf("decode a pod: %w", err)
	}
	return p, nil
}

func (p *Pod) name(n protowire.Number, value []byte) error {
	switch n {
	case metaName:
		p.Name = string(value)
	case metaNamespace:
		p.Namespace = string(value)
	case metaUID:
		p.UID = string(value)
	}
	return nil
}

func (p *Pod) phase(n protowire.Number, value []byte) error {
	if n == statusPhase {
		p.Ended = string(value) == "Succeeded" || string(value) == "Failed"
	}
	return nil
}

// fields calls do for each field of a message that has bytes.
func fields(data []byte, do func(protowire.Number, []byte) error) error {
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
				return protowire.ParseError(n)
			}
			data = data[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		if err := do(number, value); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
