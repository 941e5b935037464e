package dradriver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"kata-device-plugin/internal/prepare"
)

// plugin is what kubelet talks to.
type plugin struct {
	engine  *prepare.Engine
	feed    *feed
	metrics *metrics
	events  *events
	log     *slog.Logger

	untainted atomic.Bool // the API server does not keep taints
	again     func()      // makes the loop publish again
	fatal     func(error) // ends the program
	said      said        // what was logged of publishing
	served    said        // and of serving kubelet
}

// PrepareResourceClaims answers for each claim by itself: one that fails is no reason to refuse
// another.
func (p *plugin) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	all := make(map[types.UID]kubeletplugin.PrepareResult, len(claims))
	results := p.engine.Prepare(ctx, claims)
	for _, c := range claims {
		r := results[c.UID]
		p.metrics.call("prepare", time.Now().Add(-r.Took), r.Err)
		if r.Err != nil {
			p.log.Warn("not prepared", "claim", c.Namespace+"/"+c.Name, "reason", r.Err.Error())
			p.events.claim(c, reasonNotPrepared, r.Err.Error())
		}
		all[c.UID] = kubeletplugin.PrepareResult{Devices: r.Devices, Err: r.Err}
	}
	p.again()
	return all, nil
}

// UnprepareResourceClaims does the same the other way round.
func (p *plugin) UnprepareResourceClaims(ctx context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	all := make(map[types.UID]error, len(claims))
	for _, c := range claims {
		begun := time.Now()
		err := p.engine.Unprepare(ctx, string(c.UID))
		p.metrics.call("unprepare", begun, err)
		if err != nil {
			p.log.Warn("not unprepared", "claim", c.Namespace+"/"+c.Name, "reason", err.Error())
		}
		all[c.UID] = err
	}
	p.again()
	return all, nil
}

// WatchHealthStatus tells kubelet of the devices' health.
func (p *plugin) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	return p.feed.watch(ctx, reports)
}

// HandleError takes what goes wrong with the servers for kubelet. What is wrong for good ends the
// program, so that somebody notices.
func (p *plugin) HandleError(_ context.Context, err error, message string) {
	if errors.Is(err, grpc.ErrServerStopped) {
		return // it was ended before it had begun
	}
	if !errors.Is(err, kubeletplugin.ErrRecoverable) {
		p.fatal(err)
		return
	}
	if p.served.news(message+err.Error(), time.Now()) {
		p.log.Warn("serving kubelet", "reason", message+": "+err.Error())
	}
}

// problem takes what goes wrong while slices are written. It is tried again by itself; that the API
// server does not know taints changes what is published.
func (p *plugin) problem(err error, message string) {
	var dropped *resourceslice.DroppedFieldsError
	class := "transient"
	switch {
	case errors.As(err, &dropped) && slices.Contains(dropped.DisabledFeatures(), "DRADeviceTaints"):
		if !p.untainted.Swap(true) {
			p.log.Warn("the API server does not keep device taints, so a device that nobody is to get is not published while it is free", "reason", err.Error())
			p.again()
		}
		return
	case errors.As(err, &dropped):
		class = "dropped_fields"
	case apierrors.IsInvalid(err):
		class = "invalid"
	case apierrors.IsForbidden(err):
		class = "forbidden"
	}
	p.metrics.publishError(class)
	if p.said.news(message+err.Error(), time.Now()) {
		p.log.Warn("publishing devices", "reason", message+": "+err.Error())
	}
}
