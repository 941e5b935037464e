package podresources

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// maxAnswer is what kubelet's own clients allow (pkg/kubelet/apis/podresources/client.go).
const maxAnswer = 16 << 20

// Client has a connection to kubelet, which it makes when it is asked something, and anew when it
// was lost. It may be used by several goroutines.
type Client struct {
	target string

	mu   sync.Mutex
	conn *grpc.ClientConn // nil while there is none
}

// Dial makes a client of kubelet's socket. Nothing is connected yet.
func Dial(socket string) *Client { return &Client{target: "unix://" + socket} }

// connection is the one that there is, or a new one. It is used when it was there before.
func (c *Client) connection() (conn *grpc.ClientConn, used bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		return c.conn, true, nil
	}
	c.conn, err = grpc.NewClient(c.target,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	return c.conn, false, err
}

// drop ends a connection that has failed. The library would keep it, and answer from memory for up
// to two minutes, which is for servers that many clients come back to at once.
func (c *Client) drop(conn *grpc.ClientConn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != conn {
		return nil // somebody else has dropped it
	}
	c.conn = nil
	return conn.Close()
}

// Close ends the connection.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return nil
	}
	conn := c.conn
	c.conn = nil
	return conn.Close()
}

// askAgain is how long to wait when kubelet has had too many questions, by others as well: it answers
// a hundred a second, and ten at once (pkg/kubelet/apis/podresources/constants.go).
const askAgain = 100 * time.Millisecond

// ask asks a question. While kubelet refuses to answer because of the number of questions it is
// asked again, until ctx ends.
func (c *Client) ask(ctx context.Context, question func(podresources.PodResourcesListerClient) error) error {
	for {
		err := c.once(ctx, question)
		if !tooMany(err) {
			return err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return err
		}
	}
}

// once asks once: twice where the connection turns out to be that to a kubelet that has ended.
func (c *Client) once(ctx context.Context, question func(podresources.PodResourcesListerClient) error) error {
	for {
		conn, used, err := c.connection()
		if err != nil {
			return err
		}
		err = question(podresources.NewPodResourcesListerClient(conn))
		if ctx.Err() != nil || !lost(err) {
			return err
		}
		if err := errors.Join(err, c.drop(conn)); !used {
			return err
		}
	}
}

// lost says whether an error is that of the connection. Canceled is what those get whose connection
// another one has dropped.
func lost(err error) bool {
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.Canceled
}

// tooMany says whether an error is that of kubelet's limit (pkg/kubelet/apis/grpc/ratelimit.go), and
// not that of an answer that is too long, which would be too long again: gRPC has one code for both.
func tooMany(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && !strings.Contains(err.Error(), "larger than max")
}
