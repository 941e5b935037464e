package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"syscall"

	"kata-device-plugin/test/peer/wire"
)

// Kubelet is a node's kubelet. Its pods are the manifests in a directory, and those that
// the API server has for it if the node has joined one.
type Kubelet struct {
	service
	node *Node
}

// Where kubelet answers inside the node.
const (
	healthAddress = "127.0.0.1:10248"
	readAddress   = "127.0.0.1:10255"
)

// Start starts kubelet and waits until it says that it is healthy and a plugin can
// register. The first comes seconds before the second on a busy machine; and from an
// earlier life there may be a socket on which nobody listens.
func (k *Kubelet) Start(ctx context.Context) error {
	args := []string{"--config", etc("kubelet.yaml"), "--hostname-override", k.box.name, "-v", "4"}
	if k.node.options.Join != nil {
		args = append(args, "--kubeconfig", etc(kubeconfigFile))
	}
	err := k.run(ctx, wire.Start{Path: filepath.Join(wire.ProgramDir, "kubelet"), Args: args})
	if err != nil {
		return err
	}
	return Await(ctx, "kubelet to be healthy", func(ctx context.Context) error {
		if err := k.died(); err != nil {
			return err
		}
		if _, err := k.box.get(ctx, "http://"+healthAddress+"/healthz"); err != nil {
			return err
		}
		conn, err := dialUnix(ctx, k.box.Path("/var/lib/kubelet/device-plugins/kubelet.sock"))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// Restart stops kubelet as systemd does, and starts it again.
func (k *Kubelet) Restart(ctx context.Context) error { return k.restart(ctx, syscall.SIGTERM) }

// Crash kills kubelet, and starts it again.
func (k *Kubelet) Crash(ctx context.Context) error { return k.restart(ctx, syscall.SIGKILL) }

func (k *Kubelet) restart(ctx context.Context, s syscall.Signal) error {
	if _, err := k.proc.end(ctx, s); err != nil {
		return err
	}
	return k.Start(ctx)
}

// get asks an HTTP server inside the node.
func (b *box) get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	resp, err := b.web.Do(req)
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	body, err := io.ReadAll(resp.Body)
	err = errors.Join(err, resp.Body.Close())
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", url, err)
	}
	return body, nil
}

// kubeletConfig is kubelet's configuration file. One that has joined a cluster lets in
// whom the API server lets in, and one that stands alone everybody inside.
func kubeletConfig(cgroup string, joined bool) string {
	access := `authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
enableControllerAttachDetach: false
address: 127.0.0.1
`
	if joined {
		access = `authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: ` + etc(caFile) + `}}
authorization: {mode: Webhook}
`
	}
	return access + `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
staticPodPath: ` + wire.StateDir + `/manifests
volumePluginDir: /var/lib/kubelet/volumeplugins
readOnlyPort: 10255
healthzBindAddress: 127.0.0.1
# Pods of several nodes on one machine must not meet.
cgroupRoot: /` + cgroup + `
cgroupDriver: cgroupfs
# What test machines are like: control groups of version 1, swap, no right to lower an OOM score,
# a full disk.
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
# A test does not want to wait.
nodeStatusUpdateFrequency: 1s
fileCheckFrequency: 1s
syncFrequency: 1s
logging: {flushFrequency: 1s}
`
}
