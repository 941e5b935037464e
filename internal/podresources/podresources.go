// Package podresources asks kubelet which container has which device (API
// k8s.io/kubelet/pkg/apis/podresources/v1, kubelet 1.28 and later).
package podresources

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// SocketName is the service's socket in kubelet's directory for it.
const SocketName = "kubelet.sock"

// maxAnswer is what kubelet's own clients allow (pkg/kubelet/apis/podresources/client.go).
const maxAnswer = 16 << 20

// Pod is what the containers of a pod have.
type Pod struct {
	Namespace, Name string
	// Devices are those of device plugins, by resource.
	Devices map[string][]string
	// Claims are the claims that the containers use, as often as containers do.
	Claims []Claim
}

// Claim is a claim of a container, with the CDI names that stand for its devices. kubelet names
// all devices of a claim for each container, and some of them several times.
type Claim struct {
	Namespace, Name string
	CDI             []string
}

// Pods are the running pods.
func Pods(ctx context.Context, socket string) ([]Pod, error) {
	var all []Pod
	err := ask(ctx, socket, func(client podresources.PodResourcesListerClient) error {
		list, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
		for _, p := range list.GetPodResources() {
			all = append(all, pod(p))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask kubelet who has which device: %w", err)
	}
	return all, nil
}

func pod(p *podresources.PodResources) Pod {
	one := Pod{Namespace: p.GetNamespace(), Name: p.GetName(), Devices: map[string][]string{}}
	for _, container := range p.GetContainers() {
		for _, d := range container.GetDevices() {
			one.Devices[d.GetResourceName()] = append(one.Devices[d.GetResourceName()], d.GetDeviceIds()...)
		}
		for _, dynamic := range container.GetDynamicResources() {
			c := Claim{Namespace: dynamic.GetClaimNamespace(), Name: dynamic.GetClaimName()}
			for _, r := range dynamic.GetClaimResources() {
				for _, d := range r.GetCdiDevices() {
					c.CDI = append(c.CDI, d.GetName())
				}
			}
			one.Claims = append(one.Claims, c)
		}
	}
	return one
}

// Holders are the devices of device plugins that containers of running pods have, by resource.
// kubelet's record on disk tells the same, but keeps pods that have ended until it allocates the
// next device.
func Holders(ctx context.Context, socket string) (map[string][]string, error) {
	pods, err := Pods(ctx, socket)
	if err != nil {
		return nil, err
	}
	held := map[string][]string{}
	for _, p := range pods {
		for resource, ids := range p.Devices {
			held[resource] = append(held[resource], ids...)
		}
	}
	return held, nil
}

// Allocatable are the devices that device plugins offer, by resource.
func Allocatable(ctx context.Context, socket string) (map[string][]string, error) {
	all := map[string][]string{}
	err := ask(ctx, socket, func(client podresources.PodResourcesListerClient) error {
		answer, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
		for _, d := range answer.GetDevices() {
			all[d.GetResourceName()] = append(all[d.GetResourceName()], d.GetDeviceIds()...)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask kubelet which devices are offered: %w", err)
	}
	return all, nil
}

// askAgain is how long to wait when kubelet has had too many questions, by others as well: it answers
// a hundred a second, and ten at once (pkg/kubelet/apis/podresources/constants.go).
const askAgain = 100 * time.Millisecond

// ask has a conversation with kubelet. While that refuses to answer because of the number of
// questions it is asked again, until ctx ends.
func ask(ctx context.Context, socket string, question func(podresources.PodResourcesListerClient) error) error {
	conn, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		err := question(podresources.NewPodResourcesListerClient(conn))
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

// tooMany says whether an error is that of kubelet's limit (pkg/kubelet/apis/grpc/ratelimit.go), and
// not that of an answer that is too long, which would be too long again: gRPC has one code for both.
func tooMany(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && !strings.Contains(err.Error(), "larger than max")
}
