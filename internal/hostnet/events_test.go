package hostnet

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// TestEvents: each kind of change is a signal, and nothing is left behind.
func TestEvents(t *testing.T) {
	Alone(t)
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(lo); err != nil { // for black holes
		t.Fatal(err)
	}
	before := sockets(t)
	bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br0"}}
	unused := func(cidr string) *netlink.Route { // it leads nowhere
		_, all, err := net.ParseCIDR(cidr)
		if err != nil {
			t.Fatal(err)
		}
		return &netlink.Route{Dst: all, Type: unix.RTN_BLACKHOLE, Table: 100}
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"a link is made", func() error { return netlink.LinkAdd(bridge) }},
		{"it gets another name", func() error { return netlink.LinkSetName(bridge, "br1") }},
		{"a route is made", func() error { return netlink.RouteAdd(unused("0.0.0.0/0")) }},
		{"a route of IPv6 is made", func() error { return netlink.RouteAdd(unused("::/0")) }},
		{"a route goes", func() error { return netlink.RouteDel(unused("0.0.0.0/0")) }},
		{"a nexthop object is made", blackhole},
		{"the link goes", func() error { return netlink.LinkDel(bridge) }},
	} {
		// A subscription for each step: what came before it is none of its events.
		ctx, cancel := context.WithCancel(t.Context())
		events, err := Events(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		signalled(t, events, step.what)
		cancel()
		for range events { // the last of it, and then the end
		}
		if n := sockets(t); n != before {
			t.Errorf("%s: %d sockets after the end, %d before", step.what, n, before)
		}
	}
}

// TestLost: events that were lost are a signal like any other, and not the end.
func TestLost(t *testing.T) {
	Alone(t)
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	probe, s := narrow(t), narrow(t)
	for i := range 20 {
		if err := netlink.LinkSetMTU(lo, 2000+i); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := probe.Receive(); !errors.Is(err, unix.ENOBUFS) {
		t.Fatalf("no overflow, but %v", err)
	}
	probe.Close()
	ctx, cancel := context.WithCancel(t.Context())
	events := signals(ctx, s)
	signalled(t, events, "events were lost")
	if err := netlink.LinkSetMTU(lo, 1500); err != nil {
		t.Fatal(err)
	}
	signalled(t, events, "it goes on")
	cancel()
	for range events {
	}
}

// narrow subscribes to links, with the least buffer that there is.
func narrow(t *testing.T) *nl.NetlinkSocket {
	t.Helper()
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetReceiveBufferSize(1, true); err != nil {
		t.Fatal(err)
	}
	return s
}

// blackhole makes a nexthop object that leads nowhere, which takes lo to be up.
func blackhole() error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWNEXTHOP, unix.NLM_F_CREATE|unix.NLM_F_EXCL|unix.NLM_F_ACK)
	req.AddRawData(slices.Concat([]byte{unix.AF_INET, 0, unix.RTPROT_STATIC, 0, 0, 0, 0, 0}, attr(unix.NHA_ID, num(9)), attr(unix.NHA_BLACKHOLE)))
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

func signalled(t *testing.T, events <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, ok := <-events:
		if !ok {
			t.Fatalf("%s: the end", what)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: no signal", what)
	}
}

// sockets counts the open sockets of the process.
func sockets(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(target, "socket:") {
			n++
		}
	}
	return n
}
