package dradriver

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"kata-device-plugin/internal/finding"
)

// A report is a lease: kubelet takes a device's health for unknown when none has come for a while.
const (
	healthLease  = 30 * time.Second
	healthResend = 10 * time.Second
)

// feed tells kubelet of the devices' health, which shows it in the status of their pods.
type feed struct {
	mu      sync.Mutex
	devices []kubeletplugin.DeviceHealth
	changed chan struct{} // closed, and made anew, at each change
}

func newFeed() *feed { return &feed{changed: make(chan struct{})} }

// set takes what is offered. Whoever watches is told if something has changed.
func (f *feed) set(pool string, offers []offer) {
	var devices []kubeletplugin.DeviceHealth
	for i := range offers {
		if o := &offers[i]; o.unpublished == nil || o.held {
			devices = append(devices, healthOf(pool, o))
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(devices, f.devices) {
		f.devices = devices
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

// healthOf is one device's health. That somebody else has it says nothing against it, and what
// could not be read is unknown.
func healthOf(pool string, o *offer) kubeletplugin.DeviceHealth {
	h := kubeletplugin.DeviceHealth{
		PoolName: pool, DeviceName: o.device.Name, Health: kubeletplugin.HealthStatusHealthy, HealthCheckTimeout: healthLease,
	}
	if f, faulty := o.against[taintUnhealthy]; faulty {
		h.Health, h.Message = kubeletplugin.HealthStatusUnhealthy, f.String()+"; "+f.Remedy
		if f.ID == finding.Unreadable().ID {
			h.Health = kubeletplugin.HealthStatusUnknown
		}
	}
	return h
}

// watch sends reports until ctx ends: at once, at each change, and again before kubelet forgets.
func (f *feed) watch(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	resend := time.NewTicker(healthResend)
	defer resend.Stop()
	for {
		f.mu.Lock()
		devices, changed := slices.Clone(f.devices), f.changed
		f.mu.Unlock()
		for i := range devices {
			devices[i].LastUpdated = time.Now()
		}
		select {
		case reports <- kubeletplugin.DeviceHealthReport{Devices: devices}:
		case <-ctx.Done():
			return nil
		}
		select {
		case <-changed:
		case <-resend.C:
		case <-ctx.Done():
			return nil
		}
	}
}
