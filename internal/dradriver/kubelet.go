package dradriver

import (
	"context"
	"strings"
	"time"

	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/podresources"
	"kata-device-plugin/internal/prepare"
)

// view asks kubelet, on the socket on which it tells who has what. A device plugin's device is
// one of ours if its ID is the PCI address, or a share of it (ADDRESS::N): so do the plugins of
// this project, and those that they take the place of.
func view(ctx context.Context, socket string) (prepare.View, error) {
	v := prepare.View{Plugged: map[string]string{}, Claims: map[string]prepare.Use{}, Named: map[string]bool{}}
	offered, err := patiently(ctx, func() (map[string][]string, error) { return podresources.Allocatable(ctx, socket) })
	if err != nil {
		return v, err
	}
	for resource, ids := range offered {
		for _, id := range ids {
			if address, ok := deviceAddress(id); ok {
				v.Plugged[address] = "offered as " + resource
			}
		}
	}
	pods, err := patiently(ctx, func() ([]podresources.Pod, error) { return podresources.Pods(ctx, socket) })
	if err != nil {
		return v, err
	}
	for _, p := range pods {
		for resource, ids := range p.Devices {
			for _, id := range ids {
				if address, ok := deviceAddress(id); ok {
					v.Plugged[address] = "pod " + p.Namespace + "/" + p.Name + " has it as " + resource
				}
			}
		}
		for _, c := range p.Claims {
			name := c.Namespace + "/" + c.Name
			v.Named[name] = true
			addUses(v.Claims, name, c.CDI)
		}
	}
	return v, nil
}

// askAgain is how long to wait when kubelet has had too many questions, by others as well.
const askAgain = 100 * time.Millisecond

// patiently asks again while kubelet refuses to answer because of the number of questions, until ctx
// ends.
func patiently[T any](ctx context.Context, question func() (T, error)) (T, error) {
	for {
		answer, err := question()
		if !tooMany(err) {
			return answer, err
		}
		select {
		case <-time.After(askAgain):
		case <-ctx.Done():
			return answer, err
		}
	}
}

// tooMany says whether an error is codes.ResourceExhausted of kubelet's limit
// (pkg/kubelet/apis/grpc/ratelimit.go), and not that of an answer that is too long, which would be
// too long again. It is told by the text: this room does not speak gRPC.
func tooMany(err error) bool {
	return err != nil && strings.Contains(err.Error(), "code = ResourceExhausted") && !strings.Contains(err.Error(), "larger than max")
}

// addUses adds the devices that CDI names of this driver stand for.
func addUses(uses map[string]prepare.Use, name string, qualified []string) {
	for _, q := range qualified {
		device, ours := strings.CutPrefix(q, dra.Driver+"/claim=")
		if !ours {
			continue
		}
		if uid, address, ok := prepare.ParseSpecName(device); ok {
			use := uses[uid]
			use.Claim = name
			use.Addresses = append(use.Addresses, address)
			uses[uid] = use
		}
	}
}

// deviceAddress is the PCI address that a device plugin's device is at.
func deviceAddress(id string) (string, bool) {
	text, _, _ := strings.Cut(id, "::")
	a, err := pci.ParseAddress(text)
	return text, err == nil && a.String() == text
}
