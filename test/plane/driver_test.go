//go:build !kubernetes134

package plane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	cdi "tags.cncf.io/container-device-interface/specs-go"
)

// driverName is the fake driver's, and its attributes' domain.
const driverName = "fake.katacontainers.io"

// characters are devices that every machine has, as nodes for those that none has.
func characters() []string {
	return []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/console"}
}

// driver is the smallest DRA driver there can be: it hands out what it is asked for.
type driver struct {
	node   *Node
	helper *kubeletplugin.Helper
	health chan kubeletplugin.DeviceHealthReport

	mu     sync.Mutex
	calls  []string
	errs   []error
	failed map[string]error // claim to what Prepare says of it
}

// startDriver starts one for a node in this process. It ends with the test.
func startDriver(t *testing.T, n *Node, c *rest.Config) *driver {
	t.Helper()
	c.UserAgent = driverName + "/" + n.Name // the writes of one driver are told from another's by it
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	d := &driver{node: n, health: make(chan kubeletplugin.DeviceHealthReport), failed: map[string]error{}}
	d.helper, err = kubeletplugin.Start(t.Context(), d, kubeletplugin.DriverName(driverName), kubeletplugin.KubeClient(client),
		kubeletplugin.NodeName(n.Name), kubeletplugin.RegistrarDirectoryPath(n.Registry()),
		kubeletplugin.PluginDataDirectoryPath(n.PluginDir(t, driverName)), kubeletplugin.CDIDirectory(n.CDI))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.helper.Stop)
	return d
}

func (d *driver) publish(t *testing.T, devices []resourceapi.Device) {
	t.Helper()
	if err := d.helper.PublishResources(t.Context(), resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{
		d.node.Name: {Slices: []resourceslice.Slice{{Devices: devices}}},
	}}); err != nil {
		t.Fatal(err)
	}
}

// ready waits until kubelet and the scheduler's source know the driver.
func (d *driver) ready(t *testing.T) []resourceapi.ResourceSlice {
	t.Helper()
	Await(t, "the driver's registration", func(context.Context) error {
		if s := d.helper.RegistrationStatus(); s == nil || !s.PluginRegistered {
			return fmt.Errorf("its status is %v", s)
		}
		return nil
	})
	return d.node.plane.AwaitSlices(t, driverName, d.node.Name, "published", some)
}

func some(list []resourceapi.ResourceSlice) error {
	if len(list) == 0 {
		return fmt.Errorf("there are none")
	}
	return nil
}

// pairs are GPUs and NICs, each GPU with the NIC of the same number on one PCIe root.
func pairs(count int) []resourceapi.Device {
	var devices []resourceapi.Device
	for _, kind := range []string{"gpu", "nic"} {
		for i := range count {
			devices = append(devices, resourceapi.Device{
				Name: fmt.Sprintf("%s-%d", kind, i),
				Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
					"type":                            {StringValue: &kind},
					"resource.kubernetes.io/pcieRoot": {StringValue: new(fmt.Sprintf("pci0000:%02x", i))},
				},
			})
		}
	}
	return devices
}

// PrepareResourceClaims implements kubeletplugin.DRAPlugin.
func (d *driver) PrepareResourceClaims(_ context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, c := range claims {
		d.calls = append(d.calls, "prepare "+c.Name)
		r := kubeletplugin.PrepareResult{Err: d.failed[c.Name]}
		spec := cdi.Spec{Version: "0.6.0", Kind: driverName + "/claim"}
		for i, a := range c.Status.Allocation.Devices.Results {
			name := string(c.UID) + "-" + a.Device
			spec.Devices = append(spec.Devices, cdi.Device{Name: name, ContainerEdits: cdi.ContainerEdits{DeviceNodes: []*cdi.DeviceNode{
				{Path: "/dev/vfio/devices/" + a.Device, HostPath: characters()[i]},
			}}})
			r.Devices = append(r.Devices, kubeletplugin.Device{
				Requests: []string{a.Request}, PoolName: a.Pool, DeviceName: a.Device, CDIDeviceIDs: []string{spec.Kind + "=" + name},
			})
		}
		data, err := json.Marshal(spec)
		if err == nil {
			err = os.WriteFile(d.spec(c.UID), data, 0o600)
		}
		if err != nil {
			r.Err = err
		}
		results[c.UID] = r
	}
	return results, nil
}

// UnprepareResourceClaims implements kubeletplugin.DRAPlugin.
func (d *driver) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	results := map[types.UID]error{}
	for _, c := range claims {
		d.calls = append(d.calls, "unprepare "+c.Name)
		results[c.UID] = os.RemoveAll(d.spec(c.UID))
	}
	return results, nil
}

// HandleError implements kubeletplugin.DRAPlugin.
func (d *driver) HandleError(_ context.Context, err error, _ string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.errs = append(d.errs, err)
}

// WatchHealthStatus implements kubeletplugin.DRAPlugin.
func (d *driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	for {
		select {
		case r := <-d.health:
			select {
			case reports <- r:
			case <-ctx.Done():
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// report tells kubelet of a device's health.
func (d *driver) report(t *testing.T, device string, h kubeletplugin.HealthStatus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	select {
	case d.health <- kubeletplugin.DeviceHealthReport{Devices: []kubeletplugin.DeviceHealth{
		{PoolName: d.node.Name, DeviceName: device, Health: h, LastUpdated: time.Now(), HealthCheckTimeout: time.Hour},
	}}:
	case <-ctx.Done():
		t.Fatal("nobody asks for health")
	}
}

func (d *driver) spec(claim types.UID) string {
	return filepath.Join(d.node.CDI, "fake."+string(claim)+".json")
}

func (d *driver) called(call string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.calls, call)
}

func (d *driver) errors() []error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.errs)
}

// allocated are the results of a pod's only claim, request=device.
func allocated(t *testing.T, p *Plane, pod *v1.Pod) (claim string, results []string) {
	t.Helper()
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		claim = s.ResourceClaimName
	} else {
		claim = *pod.Status.ResourceClaimStatuses[0].ResourceClaimName
	}
	c := p.claim(t, pod.Namespace, claim)
	for _, r := range c.Status.Allocation.Devices.Results {
		results = append(results, r.Request+"="+r.Device)
	}
	slices.Sort(results)
	return claim, results
}
