// Package podresources asks kubelet which container has which device (API
// k8s.io/kubelet/pkg/apis/podresources/v1, kubelet 1.28 and later).
package podresources

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// SocketName is the service's socket in kubelet's directory for it.
const SocketName = "kubelet.sock"

// maxAnswer is what kubelet's own clients allow (pkg/kubelet/apis/podresources/client.go).
const maxAnswer = 16 << 20

// Holders are the devices that containers of running pods have, by resource. kubelet's record
// on disk tells the same, but keeps pods that have ended until it allocates the next device.
func Holders(ctx context.Context, socket string) (map[string][]string, error) {
	conn, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("ask kubelet who has which device: %w", err)
	}
	defer conn.Close()
	list, err := podresources.NewPodResourcesListerClient(conn).List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask kubelet who has which device: %w", err)
	}
	held := map[string][]string{}
	for _, pod := range list.GetPodResources() {
		for _, container := range pod.GetContainers() {
			for _, d := range container.GetDevices() {
				held[d.GetResourceName()] = append(held[d.GetResourceName()], d.GetDeviceIds()...)
			}
		}
	}
	return held, nil
}
