package prepare_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/prepare"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sim/simtest"
	"kata-device-plugin/internal/sysfs"
)

const (
	node     = "node-a"
	cdiKind  = "vfio.katacontainers.io/claim"
	claimAPI = "vfio.katacontainers.io/v1alpha1"
)

// rig is a node with an engine, and in kubelet's and the API server's place what the test says.
type rig struct {
	*sim.Node
	*prepare.Engine
	t      testing.TB
	dir    string
	source host.Source
	roots  host.Roots
	config prepare.Config

	now       time.Time
	view      prepare.View
	viewErr   error
	claims    map[string]*resourceapi.ResourceClaim // by namespace/name, in the API server
	claimsErr error
	refused   map[dra.Type]error
}

func newRig(t testing.TB, platform string) *rig {
	t.Helper()
	n, root := simtest.Node(t, simtest.Preset(t, platform))
	r := open(t, root)
	r.Node = n
	return r
}

// open makes an engine for a node that is laid out in a directory.
func open(t testing.TB, dir string) *rig {
	t.Helper()
	r := &rig{
		t: t, dir: dir, roots: host.Under(dir, "test"), now: time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC),
		view:   prepare.View{Plugged: map[string]string{}, Claims: map[string]prepare.Use{}, Named: map[string]bool{}},
		claims: map[string]*resourceapi.ResourceClaim{}, refused: map[dra.Type]error{},
	}
	sys, err := sysfs.Open(r.roots.Sys)
	must(t, err)
	t.Cleanup(func() { must(t, sys.Close()) })
	r.source = host.Source{Sys: sys, Dev: devfs.Dir(r.roots.Dev), Wanted: dra.Wants}
	records, err := claim.Open(filepath.Join(r.roots.Run, "claims"))
	must(t, err)
	r.config = prepare.Config{
		Pool: node, Records: records, CDI: r.roots.CDI, Boot: "boot-1",
		Fresh:   func(context.Context) (*dra.Inventory, error) { return r.inventory(), nil },
		HasNode: r.source.HasNode,
		Kubelet: func(context.Context) (prepare.View, error) { return r.view, r.viewErr },
		Current: func(address, node string) bool { return strings.HasSuffix(node, "/"+filepath.Base(r.cdev(address))) },
		Owns:    func(t dra.Type) error { return r.refused[t] },
		Claim: func(_ context.Context, namespace, name string) (*resourceapi.ResourceClaim, error) {
			return r.claims[namespace+"/"+name], r.claimsErr
		},
		Now: func() time.Time { return r.now },
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	r.Engine = prepare.New(r.config)
	return r
}

// restart is a new process of the driver, after a reboot if that has another ID.
func (r *rig) restart(boot string) {
	r.t.Helper()
	records, err := claim.Open(filepath.Join(r.roots.Run, "claims"))
	must(r.t, err)
	r.config.Records, r.config.Boot = records, boot
	r.Engine = prepare.New(r.config)
}

func (r *rig) inventory() *dra.Inventory { return dra.Take(r.source.Look(nil)) }

// claim is a claim in the API server that has devices, each the result of a request of its own.
func (r *rig) claim(uid string, devices ...string) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{}
	c.Namespace, c.Name, c.UID = "team", "claim-"+uid, types.UID(uid)
	c.Status.Allocation = &resourceapi.AllocationResult{}
	for i, d := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "r" + string(rune('0'+i)), Driver: dra.Driver, Pool: node, Device: d,
		})
	}
	c.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod", UID: "p"}}
	r.claims[c.Namespace+"/"+c.Name] = c
	return c
}

// configure gives a claim opaque parameters.
func configure(c *resourceapi.ResourceClaim, source resourceapi.AllocationConfigSource, raw string, requests ...string) {
	c.Status.Allocation.Devices.Config = append(c.Status.Allocation.Devices.Config, resourceapi.DeviceAllocationConfiguration{
		Source: source, Requests: requests,
		DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
			Driver: dra.Driver, Parameters: runtime.RawExtension{Raw: []byte(raw)},
		}},
	})
}

// ask prepares one claim.
func (r *rig) ask(c *resourceapi.ResourceClaim) ([]kubeletplugin.Device, error) {
	result := r.Prepare(r.t.Context(), []*resourceapi.ResourceClaim{c})[c.UID]
	return result.Devices, result.Err
}

// prepared prepares a claim and returns the CDI names.
func (r *rig) prepared(c *resourceapi.ResourceClaim) []string {
	r.t.Helper()
	devices, err := r.ask(c)
	must(r.t, err)
	var names []string
	for _, d := range devices {
		names = append(names, d.CDIDeviceIDs...)
	}
	return names
}

// refusedFor prepares a claim, which has to be refused with these words.
func (r *rig) refusedFor(c *resourceapi.ResourceClaim, words ...string) {
	r.t.Helper()
	devices, err := r.ask(c)
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			r.t.Errorf("%s: %v, %v, want %q", c.Name, devices, err, w)
		}
	}
}

// spec is what the CDI spec of a claim says, a line for each device, nil for no spec.
func (r *rig) spec(uid string) []string {
	var all []string
	for _, d := range cdi.NewFile(r.roots.CDI, "kata.dra."+uid+".", cdiKind).Read() {
		line := strings.TrimPrefix(d.Name, uid+"-")
		for _, n := range d.Nodes {
			line += " " + n.OnHost() + " " + n.Permissions
		}
		all = append(all, line)
	}
	return all
}

// state is the state of a claim's record, "" for none.
func (r *rig) state(uid string) claim.State {
	r.t.Helper()
	record, _, err := r.config.Records.Get(uid)
	must(r.t, err)
	return record.State
}

// put changes the state of a claim's record, as a process that was killed has left it.
func (r *rig) put(uid string, state claim.State) {
	r.t.Helper()
	unlock, err := r.config.Records.Lock(r.t.Context())
	must(r.t, err)
	record, _, err := r.config.Records.Get(uid)
	must(r.t, err)
	record.State = state
	must(r.t, r.config.Records.Put(record), unlock())
}

// reconcile makes what is on disk agree with the node.
func (r *rig) reconcile() prepare.State {
	r.t.Helper()
	s, err := r.Reconcile(r.inventory(), &r.view)
	must(r.t, err)
	return s
}

// cdev is the node that a device has now.
func (r *rig) cdev(address string) string {
	r.t.Helper()
	i := r.inventory()
	for _, d := range i.Devices {
		if d.Function.Address.String() == address {
			return d.Nodes[0]
		}
	}
	return ""
}

// groupNode is where the legacy node of a GPU's IOMMU group is.
func (r *rig) groupNode(address string) string {
	r.t.Helper()
	d, there := r.inventory().Device(deviceName(address))
	if !there {
		r.t.Fatalf("%s is not there", address)
	}
	return filepath.Join(r.roots.VFIO(), d.Function.Group.Number)
}

func (r *rig) equal(what string, got, want []string) {
	r.t.Helper()
	if !slices.Equal(got, want) {
		r.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// deviceName is the name of a GPU's device.
func deviceName(address string) string {
	return "gpu-" + strings.NewReplacer(":", "-", ".", "-").Replace(address)
}

func address(t testing.TB, s string) pci.Address {
	t.Helper()
	a, err := pci.ParseAddress(s)
	must(t, err)
	return a
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
