// Package hostnet reads the node's own network by netlink: which links there are and how
// they are stacked, which of them carry default routes, and which DDP package a function
// runs. It only reads. What a process sees is its network namespace, so a pod needs
// hostNetwork: see SameNamespace.
//
// Of the netlink library only the transport is used. Its list of links asks for the state
// of every VF, which costs milliseconds each in the drivers of some PFs, and the reply for
// a PF with more than 200 VFs does not fit into its buffer. Its routes do not say when they
// lead to a nexthop object.
package hostnet

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/host"
)

// Links reads the links and default routes of the process's network namespace. Links and
// routes are read one after the other: a route may lead to a link that is not listed, when
// that was made in between. Events then tells of it.
func Links() (*host.Links, error) {
	links, err := readLinks()
	if err != nil {
		return nil, fmt.Errorf("read links: %w", err)
	}
	defaults, err := readDefaults()
	if err != nil {
		return nil, fmt.Errorf("read default routes: %w", err)
	}
	return &host.Links{Links: links, Defaults: defaults}, nil
}

// dump asks for all objects of a kind, for example all links.
func dump(request, reply uint16, data ...nl.NetlinkRequestData) ([][]byte, error) {
	return whole(func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(int(request), unix.NLM_F_DUMP)
		for _, d := range data {
			req.AddData(d)
		}
		// The request has a socket of its own: what is left of an interrupted dump goes
		// with it.
		return req.Execute(unix.NETLINK_ROUTE, reply)
	})
}

// whole repeats a dump until nothing changed while it was made. The kernel marks one that
// may lack an object or have it twice (NLM_F_DUMP_INTR, nl_dump_check_consistent in
// include/net/netlink.h).
func whole(read func() ([][]byte, error)) ([][]byte, error) {
	const attempts = 10
	var err error
	for range attempts {
		var msgs [][]byte
		// It is true of the library's ErrDumpInterrupted too.
		if msgs, err = read(); !errors.Is(err, unix.EINTR) {
			return msgs, err
		}
	}
	return nil, fmt.Errorf("read %d times, interrupted each time: %w", attempts, err)
}
