package hostnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/watch"
)

// receiveBuffer holds the events of a node that makes hundreds of interfaces at once.
const receiveBuffer = 1 << 20

// Events returns a channel that receives when links, routes or nexthop objects of the
// process's network namespace have changed, and when events were lost. It does not wait for
// the reader: one signal stands for all that came since. The channel is closed when ctx ends,
// or if the socket breaks: from then on only a clock says when to look.
//
// Addresses are not subscribed to. Nothing that Links reads depends on one without a route,
// and IPv6 announces them anew with each router advertisement.
//
// What comes after Events returns is an event, what came before it is found by a look.
func Events(ctx context.Context) (<-chan struct{}, error) {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK,
		unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_NEXTHOP)
	if err != nil {
		return nil, fmt.Errorf("subscribe to network events: %w", err)
	}
	if s.SetReceiveBufferSize(receiveBuffer, true) != nil { // it takes CAP_NET_ADMIN
		_ = s.SetReceiveBufferSize(receiveBuffer, false) // the kernel grants what it allows
	}
	return signals(ctx, s), nil
}

// concerns says whether a message is of something that Links reads and that may matter. Of
// routes those are default routes, and of links all that may lead to a device: nodes have a
// route and a veth for each pod, and would look all the time.
func concerns(m syscall.NetlinkMessage) bool {
	switch m.Header.Type {
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		return len(m.Data) < unix.SizeofRtMsg || nl.DeserializeRtMsg(m.Data).Dst_len == 0
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		l, err := parseLink(m.Data)
		return err != nil || l.Kind != "veth" && l.Kind != "tun"
	}
	return true
}

// signals reads from a socket until ctx ends, and closes it.
func signals(ctx context.Context, s *nl.NetlinkSocket) <-chan struct{} {
	return watch.Relay(ctx, func() (bool, error) {
		msgs, from, err := s.Receive()
		switch {
		// Events were lost, or one could not be read.
		case errors.Is(err, unix.ENOBUFS), errors.Is(err, unix.EINVAL):
			return true, nil
		case err != nil:
			return false, err
		}
		return from.Pid == nl.PidKernel && slices.ContainsFunc(msgs, concerns), nil
	}, s.Close)
}
