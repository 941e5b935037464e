// Package uevent passes on that the kernel has announced a change of a device: what udev
// listens to. It tells nothing of what has changed. Events may be lost, and a look finds out
// by itself.
//
// In the initial network namespace, where a pod with hostNetwork is, all announcements
// arrive. In another one those of network interfaces and of RDMA devices are only of its
// own, and where that belongs to another user namespace than the initial one, nothing else
// arrives at all (uevent_net_init and kobject_uevent_net_broadcast in
// lib/kobject_uevent.c).
package uevent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/watch"
)

const (
	// kernelGroup is the multicast group of the kernel. Group 2 is that of udev, whose
	// messages anybody with its privileges can send.
	kernelGroup = 1
	// receiveBuffer holds the bursts of a node that makes hundreds of VFs at once.
	receiveBuffer = 1 << 20
	// messageSize is more than the kernel sends: its environment has UEVENT_BUFFER_SIZE,
	// 2048 bytes, and the header before it is a path in sysfs.
	messageSize = 8192
)

// Signals returns a channel that receives when the kernel has announced something that may
// concern a device handed out, and when announcements were lost. It does not wait for the
// reader: one signal stands for all that came since. The channel is closed when ctx ends, or
// if the socket breaks: from then on only a clock says when to look.
//
// What comes after Signals returns is announced, what came before it is found by a look.
func Signals(ctx context.Context) (<-chan struct{}, error) {
	s, err := open(receiveBuffer)
	if err != nil {
		return nil, fmt.Errorf("listen to the kernel's uevents: %w", err)
	}
	return watch.Relay(ctx, s.next, func() { s.file.Close() }), nil
}

// socket receives the kernel's announcements.
type socket struct {
	file *os.File // on Go's poller, so that Close wakes a reader up
	conn syscall.RawConn
	buf  [messageSize]byte
}

func open(buffer int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil { // it takes CAP_NET_ADMIN
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer) // the kernel grants what it allows
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: kernelGroup}); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	s := &socket{file: os.NewFile(uintptr(fd), "uevent")}
	if s.conn, err = s.file.SyscallConn(); err != nil {
		s.file.Close()
		return nil, err
	}
	return s, nil
}

// next waits for a message and reports whether it tells to look again. An error is the end.
func (s *socket) next() (bool, error) {
	var (
		n        int
		from     unix.Sockaddr
		received error
	)
	err := s.conn.Read(func(fd uintptr) bool {
		n, from, received = unix.Recvfrom(int(fd), s.buf[:], 0)
		return !errors.Is(received, unix.EAGAIN)
	})
	switch {
	case err != nil:
		return false, err
	case errors.Is(received, unix.ENOBUFS): // announcements were lost
		return true, nil
	case errors.Is(received, unix.EINTR):
		return false, nil
	case received != nil:
		return false, os.NewSyscallError("recvfrom", received)
	}
	// The port of the kernel is 0. A process with privileges can send to the group too.
	sender, ok := from.(*unix.SockaddrNetlink)
	return ok && sender.Pid == 0 && concerns(s.buf[:n]), nil
}
