package nic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
)

// rail is the HCA number n of a node, healthy or without its driver.
func rail(n int, healthy bool) host.Function {
	f := function(fmt.Sprintf("0000:%02x:00.0", n), 0x15b3, 0x101b, 0x020700, "mlx5_core", numa(host.Node(n)), infiniband(fmt.Sprintf("ib%d", n)))
	if healthy {
		shares(n, "umad")(&f)
	} else {
		shares(n)(&f)
	}
	return f
}

// counts tells the shares of each HCA: "1:4 2:3+1" is four healthy ones of 01, three of 02 and
// one that is not.
func counts(l *life) string {
	var all []string
	for _, r := range l.last {
		healthy, not := map[string]int{}, map[string]int{}
		var order []string
		for i := range r.Devices {
			d := &r.Devices[i]
			bus := strings.TrimLeft(d.ID[len("0000:"):len("0000:01")], "0")
			if !slices.Contains(order, bus) {
				order = append(order, bus)
			}
			if d.Healthy() {
				healthy[bus]++
			} else {
				not[bus]++
			}
		}
		for _, bus := range order {
			text := fmt.Sprintf("%s:%d", bus, healthy[bus])
			if not[bus] > 0 {
				text += fmt.Sprintf("+%d", not[bus])
			}
			all = append(all, text)
		}
	}
	return strings.Join(all, " ")
}

func rails(states ...bool) *host.Snapshot {
	var all []host.Function
	for n, healthy := range states {
		all = append(all, rail(n+1, healthy))
	}
	return snapshot(all)
}

// TestBudget: rdmaHcaMax is a budget of pods. As with the old plugin there are as many healthy
// shares, whichever HCAs are well, as long as one is.
func TestBudget(t *testing.T) {
	l := &life{t: t, r: shared(t, `{"resourceName":"a","rdmaHcaMax":7,"selectors":{"matchAll":true}}`)}
	step := func(s *host.Snapshot, held map[string][]string, want string) {
		t.Helper()
		l.look(s, held)
		if got := counts(l); got != want {
			t.Errorf("%s, want %s\n%s", got, want, reasons(l.d.Findings))
		}
	}
	nobody := map[string][]string{}
	step(rails(true, true, true), nobody, "1:3 2:2 3:2")
	step(rails(true, false, true), nobody, "1:4 2:0+2 3:3")  // the others take over
	step(rails(true, true, true), nobody, "1:3+1 2:2 3:2+1") // and give back
	if got := found(l.fresh, finding.NotDealt()); got != "HST045 rdma/a 0000:01:00.0\nHST045 rdma/a 0000:03:00.0\n" {
		t.Errorf("findings:\n%s", got)
	}
	step(rails(true, true), nobody, "1:4 2:3 3:0+3") // one is gone
	step(rails(false, false), nobody, "1:0+4 2:0+3 3:0+3")
	step(rails(true, true, true), nobody, "1:3+1 2:2+1 3:2+1")
	for _, held := range []map[string][]string{holding("rdma/a", "0000:01:00.0::3", "0000:03:00.0::2"), nil} { // nil: as it was
		l.look(rails(true, true, true), held)
		l.expect(`rdma/a 0000:01:00.0::0
			rdma/a 0000:01:00.0::1
			rdma/a 0000:01:00.0::2 HST045
			rdma/a 0000:01:00.0::3
			rdma/a 0000:02:00.0::0
			rdma/a 0000:02:00.0::1
			rdma/a 0000:02:00.0::2 HST045
			rdma/a 0000:03:00.0::0
			rdma/a 0000:03:00.0::1 HST045
			rdma/a 0000:03:00.0::2`)
	}
	step(rails(true, true, true), nobody, "1:3+1 2:2+1 3:2+1")
}

// TestNewHCA: one that comes later gets its part; what pods hold stays, and so do the lowest
// numbers.
func TestNewHCA(t *testing.T) {
	l := &life{t: t, r: shared(t, `{"resourceName":"a","rdmaHcaMax":4,"selectors":{"matchAll":true}}`)}
	nobody := map[string][]string{}
	l.look(rails(true), nobody)
	if got := counts(l); got != "1:4" {
		t.Error(got)
	}
	l.look(rails(true, true), holding("rdma/a", "0000:01:00.0::1", "0000:01:00.0::2", "0000:01:00.0::3"))
	l.expect(`rdma/a 0000:01:00.0::0
		rdma/a 0000:01:00.0::1
		rdma/a 0000:01:00.0::2
		rdma/a 0000:01:00.0::3`)
	l.look(rails(true, true), holding("rdma/a", "0000:01:00.0::3"))
	l.expect(`rdma/a 0000:01:00.0::0
		rdma/a 0000:01:00.0::1
		rdma/a 0000:01:00.0::2 HST045
		rdma/a 0000:01:00.0::3
		rdma/a 0000:02:00.0::0`)
	again := &life{t: t, r: l.r} // a restart deals the same
	again.look(rails(true, true), holding("rdma/a", "0000:01:00.0::3"))
	again.expect(`rdma/a 0000:01:00.0::0
		rdma/a 0000:01:00.0::1
		rdma/a 0000:01:00.0::3
		rdma/a 0000:02:00.0::0`)
	// A smaller budget takes nothing from a pod.
	again.r = shared(t, `{"resourceName":"a","rdmaHcaMax":1,"selectors":{"matchAll":true}}`)
	again.look(rails(true, true), holding("rdma/a", "0000:01:00.0::3", "0000:02:00.0::0"))
	again.expect(`rdma/a 0000:01:00.0::0 HST045
		rdma/a 0000:01:00.0::1 HST045
		rdma/a 0000:01:00.0::3
		rdma/a 0000:02:00.0::0`)
}

// TestSharesPerDevice: each HCA has shares of its own, which give its nodes only.
func TestSharesPerDevice(t *testing.T) {
	l := &life{t: t, r: shared(t, `{"resourceName":"a","sharesPerDevice":2,"selectors":{"matchAll":true},"excludeTopology":true}`)}
	l.look(rails(true, false, true), nil)
	l.expect(`rdma/a 0000:01:00.0::0
		rdma/a 0000:01:00.0::1
		rdma/a 0000:02:00.0::0 HST008
		rdma/a 0000:02:00.0::1 HST008
		rdma/a 0000:03:00.0::0
		rdma/a 0000:03:00.0::1`)
	d := device(t, l.d, "rdma/a", "0000:03:00.0::1")
	if got := nodes(d); got != "/dev/infiniband/rdma_cm rwm\n/dev/infiniband/umad3 rwm\n/dev/infiniband/uverbs3 rwm\n" || !d.NoTopology {
		t.Errorf("nodes:\n%s", got)
	}
	l = &life{t: t, r: shared(t, `{"resourceName":"a","sharesPerDevice":2,"rdmaHcaMax":3,"selectors":{"matchAll":true}}`)}
	l.look(rails(true, true, true), nil)
	if got := counts(l); got != "1:1 2:1 3:1" {
		t.Error(got)
	}
	l.look(rails(true, false, true), map[string][]string{})
	if got := counts(l); got != "1:2 2:0+1 3:1" {
		t.Error(got)
	}
	if d := device(t, l.d, "rdma/a", "0000:03:00.0::0"); d.NoTopology || d.Function.NUMA != 3 {
		t.Errorf("the NUMA node of a share is %d", d.Function.NUMA)
	}
}

// TestSharedNodes: with a budget a container gets the nodes of all HCAs that are whole.
func TestSharedNodes(t *testing.T) {
	l := &life{t: t, r: shared(t, `{"resourceName":"a","rdmaHcaMax":2,"selectors":{"matchAll":true}}`)}
	l.look(rails(true, false, true), nil)
	const want = "/dev/infiniband/rdma_cm rwm\n/dev/infiniband/umad1 rwm\n/dev/infiniband/umad3 rwm\n/dev/infiniband/uverbs1 rwm\n/dev/infiniband/uverbs3 rwm\n"
	for _, id := range []string{"0000:01:00.0::0", "0000:03:00.0::0"} {
		d := device(t, l.d, "rdma/a", id)
		if got := nodes(d); got != want {
			t.Errorf("nodes of %s:\n%s", id, got)
		}
		for _, n := range d.Nodes { // its own are in the CDI spec
			if !strings.HasSuffix(n.Path, id[len("0000:0"):len("0000:01")]) {
				t.Errorf("%s has the node %s", id, n.Path)
			}
		}
	}
	f := rail(1, true)
	was := device(t, l.d, "rdma/a", "0000:01:00.0::0")
	if got := l.r.Again(&f, was, "rdma/a"); !got.Healthy() || got.ID != was.ID || nodes(&got) != want {
		t.Errorf("again: %s%s\n%s", got.ID, kinds(got.Faults), nodes(&got))
	}
	f = rail(1, false)
	if got := l.r.Again(&f, was, "rdma/a"); kinds(got.Faults) != " HST008" {
		t.Errorf("again, without umad: %s", kinds(got.Faults))
	}
	f.Vendor = 0x8086
	if got := shared(t, `{"resourceName":"a","rdmaHcaMax":2,"selectors":{"vendors":["15b3"]}}`).Again(&f, was, "rdma/a"); kinds(got.Faults) != " HST041" {
		t.Errorf("again, of another vendor: %s", kinds(got.Faults))
	}
}

// TestSharedLost: what an HCA of a pool may turn into.
func TestSharedLost(t *testing.T) {
	for _, tt := range []struct {
		what, fault string
		change      func(*host.Function)
	}{
		{"no driver", "HST036", func(f *host.Function) { f.Driver, f.Network = "", &host.Network{VFIndex: -1} }},
		{"no RDMA device", "HST008", func(f *host.Function) { f.Network.RDMA = nil }},
		{"all in a pod", "HST008", func(f *host.Function) { f.Network = &host.Network{VFIndex: -1} }},
		{"another link", "HST041", func(f *host.Function) { f.Network.Interfaces[0].Type = host.TypeEther }},
		{"VFIO", "HST041", func(f *host.Function) { f.Driver, f.Network = "vfio-pci", &host.Network{VFIndex: -1}; vfio("4")(f) }},
		{"a bad node", "HST008", func(f *host.Function) { f.Network.RDMA[0].UVerbs[0].Fault = "no node" }},
	} {
		l := &life{t: t, r: shared(t, `{"resourceName":"a","sharesPerDevice":1,"selectors":{"ifNames":["ib1"],"linkTypes":["infiniband"]}}`)}
		l.look(rails(true), nil)
		f := rail(1, true)
		tt.change(&f)
		for range 2 {
			l.look(snapshot([]host.Function{f}), nil)
			l.expect(`rdma/a 0000:01:00.0::0 ` + tt.fault)
		}
		l.look(rails(true), nil)
		l.expect(`rdma/a 0000:01:00.0::0`)
		// After a restart kubelet's record says that it was one.
		l = &life{t: t, r: l.r}
		l.look(snapshot([]host.Function{f}), holding("rdma/a", "0000:01:00.0::0"))
		if tt.fault == "HST041" {
			l.expect(``)
		} else {
			l.expect(`rdma/a 0000:01:00.0::0 ` + tt.fault)
		}
	}
}

// TestFindings: what is odd about pools, a line for a pool and not for each device.
func TestFindings(t *testing.T) {
	all := append(base(), function("0000:70:00.0", 0x8086, 0x1592, 0x020000, "ice", ether("x0")))
	never := host.Function{Err: fmt.Errorf("find 0000:71:00.0: I/O")}
	never.Address = addr("0000:71:00.0")
	broken := function("0000:72:00.0", 0x8086, 0x1592, 0x020000, "ice", ether("x1"), func(f *host.Function) { f.Err = fmt.Errorf("read x: I/O") })
	s := snapshot(append(all, never, broken))
	s.Unread = []error{fmt.Errorf("list /sys/bus/pci/devices: I/O")}
	r := rules(t, `{"resourceList":[
		{"resourceName":"a","selectors":{"devices":["101e"],"drivers":["mlx5_core"]}},
		{"resourceName":"b","selectors":{"devices":["101e"]}},
		{"resourceName":"c","selectors":{"drivers":["vfio-pci","igb_uio"]}},
		{"resourceName":"d","selectors":{"devices":["ffff"]}},
		{"resourceName":"e","selectors":{"pciAddresses":["72:00.0"]}}],
		"configList":[{"resourceName":"s","rdmaHcaMax":1,"selectors":{"matchAll":true}},{"resourceName":"z","rdmaHcaMax":0,"selectors":{"matchAll":true}},
		{"resourceName":"n","rdmaHcaMax":5,"selectors":{"vendors":["abcd"]}}]}`)
	d := r.Declare(s, declare.Past{})
	const want = `
		: HST034 a directory of the host could not be listed: list /sys/bus/pci/devices: I/O
		intel.com/b : CFG005 a pool selects devices that a pool before it has: intel.com/a = 2 of them, first 0000:65:00.2
		intel.com/c : CFG015 pools before it have all devices that the pool selects: intel.com/b = 3 of them, first 0000:65:00.3
		intel.com/d : CFG016 the pool selects no device of this node: devices = left out 10
		rdma/n : CFG016 the pool selects no device of this node: vendors = left out 11
		rdma/s : CFG017 devices of a shared pool are handed out whole by another pool as well: intel.com/a = 1 of them, first 0000:65:00.7
		rdma/z : CFG007 rdmaHcaMax is 0, so the resource has no shares: rdmaHcaMax = 0
		rdma/z : CFG017 devices of a shared pool are handed out whole by another pool as well: intel.com/a = 1 of them, first 0000:65:00.7
		0000:01:00.0: HST043 no pool selects the function: intel.com/a devices = 0x1521, intel.com/b devices = 0x1521, intel.com/c drivers = igb, intel.com/d devices = 0x1521, intel.com/e pciAddresses = 0000:01:00.0`
	got := reasons(d.Findings)
	for line := range strings.Lines(lines(want)) {
		if line = strings.TrimSpace(line); !strings.Contains(lines(got), line+"\n") {
			t.Errorf("nobody says %q", line)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
	if got := found(d, finding.Unreadable(), finding.NoRDMA()); !strings.Contains(got, "HST031 0000:71:00.0\n") || !strings.Contains(got, "HST031 0000:72:00.0\n") ||
		!strings.Contains(got, "HST044 rdma/s 0000:70:00.0\n") || strings.Contains(got, "HST044 rdma/s 0000:65:00.2") {
		t.Errorf("findings:\n%s", got)
	}
	if e := device(t, d, "intel.com/e", "0000:72:00.0"); !e.Healthy() {
		t.Errorf("what could not be read and was known is lost: %s", kinds(e.Faults))
	}
	for _, f := range d.Findings {
		if f.Device == "0000:90:00.0" {
			t.Errorf("a function of no concern: %s", f)
		}
	}
	if d := rules(t, `{}`).Declare(s, declare.Past{}); len(d.Resources) > 0 || found(d, finding.NotSelected()) != "" {
		t.Errorf("without pools: %s", reasons(d.Findings))
	}
}
