package prepare_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/prepare"
)

// Three GPUs of the platform hgx-h100.
const (
	gpuA = "0000:53:00.0"
	gpuB = "0000:64:00.0"
	gpuC = "0000:75:00.0"
)

// TestPrepare: names, requests and what the names stand for, however often it is asked for, and
// nothing of it afterwards.
func TestPrepare(t *testing.T) {
	r := newRig(t, "hgx-h100")
	c := r.claim("u1", deviceName(gpuA), deviceName(gpuB))
	c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
		resourceapi.DeviceRequestAllocationResult{Request: "nic", Driver: "sriov.example.com", Pool: "other", Device: "vf0"})
	want := []string{cdiKind + "=u1-" + deviceName(gpuA), cdiKind + "=u1-" + deviceName(gpuB)}
	for range 3 {
		devices, err := r.ask(c)
		must(t, err)
		for i, d := range devices {
			if d.PoolName != node || d.DeviceName != c.Status.Allocation.Devices.Results[i].Device || d.Requests[0] != "r"+string(rune('0'+i)) {
				t.Errorf("%+v", d)
			}
		}
		r.equal("names", r.prepared(c), want)
	}
	r.equal("spec", r.spec("u1"), []string{deviceName(gpuA) + " " + r.cdev(gpuA) + " rw", deviceName(gpuB) + " " + r.cdev(gpuB) + " rw"})
	for range 2 {
		must(t, r.Unprepare(t.Context(), "u1"))
		r.equal("spec of what is given up", r.spec("u1"), nil)
		if s := r.state("u1"); s != "" {
			t.Errorf("there is a record, %s", s)
		}
	}
}

// TestNotOurs: a claim that has nothing of this driver's is fine, and leaves nothing behind.
func TestNotOurs(t *testing.T) {
	r := newRig(t, "hgx-h100")
	c := r.claim("u1", deviceName(gpuA))
	c.Status.Allocation.Devices.Results[0].Driver = "gpu.example.com"
	r.equal("names", r.prepared(c), nil)
	if s := r.state("u1"); s != "" {
		t.Errorf("there is a record, %s", s)
	}
}

// TestRefusals: what cannot be handed out is refused with the reason, and nothing is written.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*rig, *resourceapi.ResourceClaim)
		want   []string
	}{
		{"not allocated", func(_ *rig, c *resourceapi.ResourceClaim) { c.Status.Allocation = nil }, []string{"not allocated"}},
		{"another pool", func(_ *rig, c *resourceapi.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Pool = "node-b" }, []string{"pool node-b", "node-a"}},
		{"no such device", func(_ *rig, c *resourceapi.ResourceClaim) {
			c.Status.Allocation.Devices.Results[0].Device = "gpu-0000-ff-00-0"
		}, []string{"gpu-0000-ff-00-0", "no such device"}},
		{"no such name", func(_ *rig, c *resourceapi.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Device = "gpu0" }, []string{"gpu0", "such a name"}},
		{"unbound", func(r *rig, _ *resourceapi.ResourceClaim) { must(r.t, r.Unbind(address(r.t, gpuA))) }, []string{deviceName(gpuA), "HST020"}},
		{"a device plugin has it", func(r *rig, _ *resourceapi.ResourceClaim) { r.view.Plugged[gpuA] = "pod a/b has it as nvidia.com/gpu" },
			[]string{deviceName(gpuA), "pod a/b has it as nvidia.com/gpu"}},
		{"not this driver's", func(r *rig, _ *resourceapi.ResourceClaim) { r.refused[dra.GPU] = errors.New("held by a plugin") }, []string{"held by a plugin"}},
		{"kubelet is silent", func(r *rig, _ *resourceapi.ResourceClaim) { r.viewErr = errors.New("no socket") }, []string{"nobody else", "no socket"}},
		{"a container has it, without a record", func(r *rig, _ *resourceapi.ResourceClaim) {
			r.view.Claims["u0"] = prepare.Use{Claim: "old/one", Addresses: []string{gpuA}}
		}, []string{"claim old/one (u0)"}},
		{"parameters", func(_ *rig, c *resourceapi.ResourceClaim) {
			configure(c, resourceapi.AllocationConfigSourceClaim, `{"apiVersion":"`+claimAPI+`","kind":"DeviceConfig","metadata":true}`)
		}, []string{"request r0", `unknown field "metadata"`}},
		{"no group node", func(r *rig, c *resourceapi.ResourceClaim) {
			must(r.t, os.Remove(r.groupNode(gpuA)))
			configure(c, resourceapi.AllocationConfigSourceClaim, `{"apiVersion":"`+claimAPI+`","kind":"DeviceConfig","vfioNodes":"group"}`)
		}, []string{"no node /dev/vfio/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "hgx-h100")
			one := r.claim("u1", deviceName(gpuA))
			c.change(r, one)
			r.refusedFor(one, c.want...)
			if s := r.state("u1"); s != "" {
				t.Errorf("there is a record, %s", s)
			}
			r.equal("spec", r.spec("u1"), nil)
		})
	}
}

// TestExclusive: hardware that a claim has in whatever state is nobody else's, by address and not
// by name, and is free afterwards.
func TestExclusive(t *testing.T) {
	for _, state := range []claim.State{claim.Preparing, claim.Prepared, claim.Unpreparing} {
		r := newRig(t, "hgx-h100")
		r.prepared(r.claim("u1", deviceName(gpuA)))
		r.put("u1", state)
		other := r.claim("u2", deviceName(gpuB), deviceName(gpuA))
		r.refusedFor(other, deviceName(gpuA), "claim team/claim-u1 (u1)")
		r.equal("spec of who was refused", r.spec("u2"), nil)
		must(t, r.Unprepare(t.Context(), "u1"))
		r.prepared(other)
	}
}

// TestAdmin: admin access takes nothing from anybody, and nobody can take it.
func TestAdmin(t *testing.T) {
	r := newRig(t, "hgx-h100")
	r.prepared(r.claim("u1", deviceName(gpuA)))
	admin := r.claim("u2", deviceName(gpuA), deviceName(gpuB))
	for i := range admin.Status.Allocation.Devices.Results {
		admin.Status.Allocation.Devices.Results[i].AdminAccess = new(true)
	}
	r.prepared(admin)
	r.view.Claims["u2"] = prepare.Use{Claim: "team/claim-u2", Addresses: []string{gpuA, gpuB}}
	r.prepared(r.claim("u3", deviceName(gpuB)))
	r.refusedFor(r.claim("u4", deviceName(gpuA)), "u1")
}

// TestShare: two pods of one claim, and a share's ID.
func TestShare(t *testing.T) {
	r := newRig(t, "hgx-h100")
	c := r.claim("u1", deviceName(gpuA))
	c.Status.Allocation.Devices.Results[0].ShareID = new(types.UID("s1"))
	c.Status.Allocation.Devices.Results[0].Request = "gpu/h100"
	devices, err := r.ask(c)
	must(t, err)
	if d := devices[0]; d.ShareID == nil || *d.ShareID != "s1" || d.Requests[0] != "gpu/h100" {
		t.Errorf("%+v", d)
	}
	r.prepared(c)
}

// TestGroupNode: a claim, a class or one request may ask for the legacy node.
func TestGroupNode(t *testing.T) {
	const group, cdev = `{"apiVersion":"` + claimAPI + `","kind":"DeviceConfig","vfioNodes":"group"}`, `{"apiVersion":"` + claimAPI + `","kind":"DeviceConfig","vfioNodes":"cdev"}`
	r := newRig(t, "hgx-h100")
	node := strings.TrimPrefix(r.groupNode(gpuA), r.dir)
	c := r.claim("u1", deviceName(gpuA), deviceName(gpuB))
	configure(c, resourceapi.AllocationConfigSourceClaim, cdev, "r1")
	configure(c, resourceapi.AllocationConfigSourceClass, group, "r0")
	configure(c, resourceapi.AllocationConfigSourceClass, group, "r1")
	r.prepared(c)
	want := []string{deviceName(gpuA) + " " + node + " rw", deviceName(gpuB) + " " + r.cdev(gpuB) + " rw"}
	r.equal("spec", r.spec("u1"), want)
	r.reconcile()
	r.equal("spec, reconciled", r.spec("u1"), want)
}

// TestChangedAllocation: a claim that is allocated anew while its first pod has not been torn down.
func TestChangedAllocation(t *testing.T) {
	r := newRig(t, "hgx-h100")
	r.prepared(r.claim("u1", deviceName(gpuA)))
	r.refusedFor(r.claim("u1", deviceName(gpuB)), "other devices", deviceName(gpuA))
	must(t, r.Unprepare(t.Context(), "u1"))
	r.prepared(r.claim("u1", deviceName(gpuB)))
}

// TestLatePrepare: a call that was held up until after the claim was released brings nothing back,
// but a claim that is in use again is prepared again.
func TestLatePrepare(t *testing.T) {
	r := newRig(t, "hgx-h100")
	c := r.claim("u1", deviceName(gpuA))
	r.prepared(c)
	must(t, r.Unprepare(t.Context(), "u1"))
	r.prepared(c) // the next pod of the same claim
	must(t, r.Unprepare(t.Context(), "u1"))
	delete(r.claims, "team/claim-u1")
	r.refusedFor(c, "released")
	again := r.claim("u1", deviceName(gpuA))
	again.Status.ReservedFor = nil
	r.refusedFor(c, "released")
	again = r.claim("u1", deviceName(gpuA))
	again.UID = "u9"
	r.refusedFor(c, "released")
	r.claimsErr = errors.New("no connection")
	r.refusedFor(c, "no connection")
	if s := r.state("u1"); s != "" {
		t.Errorf("there is a record, %s", s)
	}
	r.now = r.now.Add(time.Hour)
	r.claimsErr = nil
	_, err := r.Sweep(t.Context())
	must(t, err)
	r.prepared(c) // it was long ago
}
