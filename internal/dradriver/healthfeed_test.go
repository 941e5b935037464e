package dradriver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/finding"
)

// TestFeed: a report at once, at each change, and again before kubelet forgets; none for a set
// that changes nothing.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed()
		good := offer{device: &dra.Device{Name: "gpu-a"}}
		sick := offer{device: good.device, against: map[string]finding.Finding{taintUnhealthy: finding.New(finding.NotViable(), "a")}}
		unread := offer{device: good.device, against: map[string]finding.Finding{taintUnhealthy: finding.New(finding.Unreadable(), "a")}}
		plugged := offer{device: good.device, against: map[string]finding.Finding{taintPlugged: finding.New(finding.Plugged(), "a")}}
		f.set("node", []offer{good})
		ctx, cancel := context.WithCancel(t.Context())
		reports, done := make(chan kubeletplugin.DeviceHealthReport), make(chan error, 1)
		go func() { done <- f.watch(ctx, reports) }()
		next := func(want kubeletplugin.HealthStatus, after time.Duration) {
			t.Helper()
			begun := time.Now()
			r := <-reports
			if len(r.Devices) != 1 || r.Devices[0].Health != want || r.Devices[0].PoolName != "node" || r.Devices[0].DeviceName != "gpu-a" {
				t.Errorf("%+v, want %s", r, want)
			}
			if took := time.Since(begun); took != after {
				t.Errorf("%s came after %s, want %s", want, took, after)
			}
			if !r.Devices[0].LastUpdated.Equal(time.Now()) || r.Devices[0].HealthCheckTimeout <= healthResend {
				t.Errorf("%+v", r.Devices[0])
			}
			synctest.Wait()
		}
		next(kubeletplugin.HealthStatusHealthy, 0)
		next(kubeletplugin.HealthStatusHealthy, healthResend)
		f.set("node", []offer{good})
		next(kubeletplugin.HealthStatusHealthy, healthResend)
		for _, c := range []struct {
			offer offer
			want  kubeletplugin.HealthStatus
		}{{sick, kubeletplugin.HealthStatusUnhealthy}, {unread, kubeletplugin.HealthStatusUnknown}, {plugged, kubeletplugin.HealthStatusHealthy}} {
			f.set("node", []offer{c.offer})
			next(c.want, 0)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestFeedWithheld: what is not published is not reported, unless a claim has it.
func TestFeedWithheld(t *testing.T) {
	f := newFeed()
	why := finding.New(finding.Plugged(), "a")
	f.set("node", []offer{
		{device: &dra.Device{Name: "gpu-a"}, unpublished: &why},
		{device: &dra.Device{Name: "gpu-b"}, unpublished: &why, held: true},
	})
	if len(f.devices) != 1 || f.devices[0].DeviceName != "gpu-b" {
		t.Errorf("%+v", f.devices)
	}
}
