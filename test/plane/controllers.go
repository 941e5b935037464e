//go:build !kubernetes134

package plane

import (
	"context"
	"fmt"
	"sync"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/devicetainteviction"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// workers is how many objects a controller works on at a time.
const workers = 4

// controllers are the scheduler and those of the controller manager's controllers that have
// to do with devices.
type controllers struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// startControllers returns once the scheduler has seen what there is.
func startControllers(ctx context.Context, config *rest.Config) (*controllers, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for the controllers: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &controllers{cancel: cancel}
	if err := c.schedule(ctx, client, config); err != nil {
		c.stop()
		return nil, fmt.Errorf("start the scheduler: %w", err)
	}
	if err := c.control(ctx, client); err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func (c *controllers) stop() {
	c.cancel()
	c.running.Wait()
}

func (c *controllers) schedule(ctx context.Context, client kubernetes.Interface, config *rest.Config) error {
	factory := scheduler.NewInformerFactory(client, 0, nil)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	s, err := scheduler.New(ctx, client, factory, nil, profile.NewRecorderFactory(broadcaster), scheduler.WithKubeConfig(config))
	if err != nil {
		return err
	}
	if err := c.inform(ctx, factory); err != nil {
		return err
	}
	if err := s.WaitForHandlersSync(ctx); err != nil {
		return fmt.Errorf("wait for its caches: %w", err)
	}
	c.running.Go(func() { s.Run(ctx) })
	return nil
}

func (c *controllers) control(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	core, resource := factory.Core().V1(), factory.Resource().V1()
	claims, err := resourceclaim.NewController(klog.FromContext(ctx), client,
		core.Pods(), factory.Scheduling().V1beta1().PodGroups(), resource.ResourceClaims(), resource.ResourceClaimTemplates())
	if err != nil {
		return fmt.Errorf("make the claim controller: %w", err)
	}
	c.running.Go(func() { claims.Run(ctx, workers) })
	// The controller manager has the same condition (app/resource.go).
	if utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaints) {
		evictor := devicetainteviction.New(client, core.Pods(), resource.ResourceClaims(), resource.ResourceSlices(),
			resource.DeviceTaintRules(), resource.DeviceClasses(), "device-taint-eviction-controller")
		c.running.Go(func() {
			if err := evictor.Run(ctx, workers); err != nil {
				klog.FromContext(ctx).Error(err, "Device taint eviction ended")
			}
		})
	}
	return c.inform(ctx, factory)
}

// inform starts informers, waits until they know what there is, and has their end waited for.
func (c *controllers) inform(ctx context.Context, factory informers.SharedInformerFactory) error {
	factory.StartWithContext(ctx)
	c.running.Go(func() {
		<-ctx.Done()
		factory.Shutdown()
	})
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	return factory.WaitForCacheSyncWithContext(limited).AsError()
}
