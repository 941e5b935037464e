package prepare_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kata-device-plugin/internal/claim"
	"kata-device-plugin/internal/prepare"
)

// TestSpecsFollow: the spec of a prepared claim names what is there, with the node that it has now,
// and is put right whatever somebody does to it.
func TestSpecsFollow(t *testing.T) {
	r := newRig(t, "hgx-h100")
	r.prepared(r.claim("u1", deviceName(gpuA), deviceName(gpuB)))
	both := func() []string {
		return []string{deviceName(gpuA) + " " + r.cdev(gpuA) + " rw", deviceName(gpuB) + " " + r.cdev(gpuB) + " rw"}
	}
	old := r.cdev(gpuA)
	must(t, r.Unbind(address(t, gpuA)))
	r.reconcile()
	r.equal("one is unbound", r.spec("u1"), both()[1:])
	must(t, r.Unbind(address(t, gpuC)), r.Bind(address(t, gpuC), "vfio-pci"), r.Bind(address(t, gpuA), "vfio-pci"))
	if r.cdev(gpuA) == old {
		t.Fatalf("it has its old node %s again, which proves nothing", old)
	}
	r.reconcile()
	r.equal("it is back with another node", r.spec("u1"), both())
	for what, change := range map[string]func(path string) error{
		"removed": os.Remove,
		"edited":  func(path string) error { return os.WriteFile(path, []byte("{}"), 0o644) },
	} {
		must(t, change(filepath.Join(r.roots.CDI, "kata.dra.u1.vfio.katacontainers.io-claim.json")))
		r.reconcile()
		r.equal(what, r.spec("u1"), both())
	}
	must(t, r.Unbind(address(t, gpuA)), r.Unbind(address(t, gpuB)))
	r.reconcile()
	r.equal("none is there", r.spec("u1"), nil)
	if s := r.state("u1"); s != claim.Prepared {
		t.Errorf("the claim is %q", s)
	}
}

// TestStrangeSpecs: a spec without a record is removed, and those of others are left alone.
func TestStrangeSpecs(t *testing.T) {
	r := newRig(t, "hgx-h100")
	r.prepared(r.claim("u1", deviceName(gpuA)))
	must(t, r.Unprepare(t.Context(), "u1"))
	mine := filepath.Join(r.roots.CDI, "kata.dra.u7.vfio.katacontainers.io-claim.json")
	others := []string{"kata.nvidia.com-gpu.json", "kata.nic.intel.com-vfio.json", "vendor.json", "kata.dra.u7.lock"}
	for _, name := range others {
		must(t, os.WriteFile(filepath.Join(r.roots.CDI, name), []byte("{}"), 0o644))
	}
	must(t, os.WriteFile(mine, []byte("{}"), 0o644))
	r.reconcile()
	if _, err := os.Lstat(mine); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the spec of no claim: %v", err)
	}
	for _, name := range others {
		if _, err := os.Lstat(filepath.Join(r.roots.CDI, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestReboot: what was prepared is held, and resolves to nothing, until it is prepared again.
func TestReboot(t *testing.T) {
	r := newRig(t, "hgx-h100")
	c := r.claim("u1", deviceName(gpuA))
	r.prepared(c)
	must(t, os.RemoveAll(r.roots.CDI))
	r.restart("boot-2")
	r.reconcile()
	r.equal("spec", r.spec("u1"), nil)
	if s := r.state("u1"); s != claim.Preparing {
		t.Errorf("the claim is %q", s)
	}
	r.refusedFor(r.claim("u2", deviceName(gpuA)), "u1")
	r.prepared(c)
	r.equal("spec, prepared again", r.spec("u1"), []string{deviceName(gpuA) + " " + r.cdev(gpuA) + " rw"})

	r.restart("boot-3")
	r.reconcile()
	must(t, r.Unprepare(t.Context(), "u1")) // its pod was deleted meanwhile
	r.prepared(r.claim("u2", deviceName(gpuA)))
}

// TestRestart: a driver that starts again in the same boot changes nothing that is right, and ends
// what an earlier one began.
func TestRestart(t *testing.T) {
	r := newRig(t, "hgx-h100")
	r.prepared(r.claim("u1", deviceName(gpuA)))
	r.prepared(r.claim("u2", deviceName(gpuB)))
	r.prepared(r.claim("u3", deviceName(gpuC)))
	for uid, state := range map[string]claim.State{"u2": claim.Preparing, "u3": claim.Unpreparing} {
		r.put(uid, state)
	}
	path := filepath.Join(r.roots.CDI, "kata.dra.u1.vfio.katacontainers.io-claim.json")
	before, err := os.Stat(path)
	must(t, err)
	r.restart("boot-1")
	r.reconcile()
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("a spec that is right was written again: %v", err)
	}
	r.equal("a claim that was being prepared", r.spec("u2"), nil)
	r.equal("a claim that was being unprepared", r.spec("u3"), nil)
	if s, s3 := r.state("u2"), r.state("u3"); s != claim.Preparing || s3 != "" {
		t.Errorf("they are %q and %q", s, s3)
	}
	r.prepared(r.claim("u2", deviceName(gpuB)))
	r.prepared(r.claim("u4", deviceName(gpuC)))
}

// TestDamaged: a record that cannot be read withholds the claim's hardware, and nothing else, until
// the claim is prepared or unprepared.
func TestDamaged(t *testing.T) {
	for name, spoil := range map[string]func(string) error{
		"torn":  func(path string) error { return os.Truncate(path, 100) },
		"empty": func(path string) error { return os.Truncate(path, 0) },
	} {
		for _, ends := range []string{"prepared", "unprepared"} {
			t.Run(name+", "+ends, func(t *testing.T) {
				r := newRig(t, "hgx-h100")
				c := r.claim("u1", deviceName(gpuA))
				r.prepared(c)
				must(t, spoil(filepath.Join(r.roots.Run, "claims", "u1.json")))
				s := r.reconcile()
				if why := s.Withheld[gpuA]; !strings.Contains(why, "u1") || len(s.Withheld) != 1 || len(s.Damaged) != 1 {
					t.Errorf("withheld %v, damaged %+v", s.Withheld, s.Damaged)
				}
				r.refusedFor(r.claim("u2", deviceName(gpuA)), "cannot be read (u1)")
				r.prepared(r.claim("u3", deviceName(gpuB)))
				if ends == "prepared" {
					r.prepared(c)
					r.refusedFor(r.claim("u2", deviceName(gpuA)), "claim team/claim-u1 (u1), prepared")
				}
				must(t, r.Unprepare(t.Context(), "u1"))
				if s := r.reconcile(); len(s.Withheld)+len(s.Damaged) > 0 {
					t.Errorf("withheld %v, damaged %+v", s.Withheld, s.Damaged)
				}
				r.prepared(r.claim("u2", deviceName(gpuA)))
			})
		}
	}
}

// TestSweep: a claim is released when the API server and kubelet agree that it has ended, twice and
// some minutes apart, and never while one of them does not answer.
func TestSweep(t *testing.T) {
	gone := func(r *rig) { delete(r.claims, "team/claim-u1") }
	for _, c := range []struct {
		name   string
		change func(*rig) // before each search
		want   bool
	}{
		{"deleted", gone, true},
		{"another of that name", func(r *rig) { r.claims["team/claim-u1"] = r.claim("u1"); r.claims["team/claim-u1"].UID = "u2" }, true},
		{"not allocated any more", func(r *rig) { r.claim("u1").Status.Allocation = nil }, true},
		{"reserved for nobody", func(r *rig) { r.claims["team/claim-u1"].Status.ReservedFor = nil }, true},
		{"in use", func(*rig) {}, false},
		{"deleted, and kubelet has it", func(r *rig) {
			gone(r)
			r.view.Claims["u1"] = prepare.Use{Claim: "team/claim-u1", Addresses: []string{gpuA}}
		}, false},
		{"deleted, and kubelet has its name", func(r *rig) { gone(r); r.view.Named["team/claim-u1"] = true }, false},
		{"kubelet does not answer", func(r *rig) { gone(r); r.viewErr = errors.New("no answer") }, false},
		{"the API server does not answer", func(r *rig) { gone(r); r.claimsErr = errors.New("no answer") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, "hgx-h100")
			r.prepared(r.claim("u1", deviceName(gpuA)))
			for step := range 5 { // every half hour after it was prepared
				c.change(r)
				released, err := r.Sweep(t.Context())
				if (err != nil) != (step > 1 && r.claimsErr != nil || r.viewErr != nil) {
					t.Errorf("step %d: %v", step, err)
				}
				// Unchanged for an hour, and seen to have ended twice.
				if now := len(released) > 0; now != (c.want && step == 3) {
					t.Errorf("step %d: released %q", step, released)
				}
				r.now = r.now.Add(30 * time.Minute)
			}
			if s := r.state("u1"); (s == "") != c.want {
				t.Errorf("the claim is %q", s)
			}
		})
	}
}

// TestSweepDoubt: one search that finds the claim alive takes back what those before it thought.
func TestSweepDoubt(t *testing.T) {
	r := newRig(t, "hgx-h100")
	c := r.claim("u1", deviceName(gpuA))
	r.prepared(c)
	for step, there := range []bool{true, false, true, false, true, false} {
		r.now = r.now.Add(90 * time.Minute)
		delete(r.claims, "team/claim-u1")
		if there {
			r.claims["team/claim-u1"] = c
		}
		if released, err := r.Sweep(t.Context()); len(released) > 0 || err != nil {
			t.Errorf("step %d: %v, %v", step, released, err)
		}
	}
}
