package hostnet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

// Devlink asks devlink about PCI functions. It keeps one socket, because it is asked of
// every function in each look. It is safe for concurrent use.
type Devlink struct {
	socket *nl.NetlinkSocket
	handle map[int]*nl.SocketHandle
	family uint16 // 0 where the kernel has no devlink
}

// OpenDevlink prepares to ask. A kernel without devlink is no error: it knows no device.
func OpenDevlink() (*Devlink, error) {
	s, err := nl.Subscribe(unix.NETLINK_GENERIC) // to no group: a socket for requests
	if err != nil {
		return nil, fmt.Errorf("open devlink: %w", err)
	}
	// A driver that asks its firmware may take long, but not for ever. An answer that is too
	// late is passed over by its sequence number.
	limit := unix.Timeval{Sec: 10}
	d := &Devlink{socket: s, handle: map[int]*nl.SocketHandle{unix.NETLINK_GENERIC: {Socket: s}}}
	err = errors.Join(s.SetSendTimeout(&limit), s.SetReceiveTimeout(&limit))
	if err == nil {
		d.family, err = d.find(nl.GENL_DEVLINK_NAME)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("open devlink: %w", err)
	}
	return d, nil
}

// Close closes the socket. A question after it is an error.
func (d *Devlink) Close() { d.socket.Close() }

// Profile is the name of the DDP package that a function runs: the running version named
// fw.app.name. It is "" where the driver states none, where it has no devlink, and where
// there is no such function.
func (d *Devlink) Profile(a pci.Address) (string, error) {
	if d.family == 0 {
		return "", nil
	}
	msg, err := d.ask(d.family, nl.GENL_DEVLINK_VERSION, nl.DEVLINK_CMD_INFO_GET,
		nl.NewRtAttr(nl.DEVLINK_ATTR_BUS_NAME, nl.ZeroTerminated("pci")),
		nl.NewRtAttr(nl.DEVLINK_ATTR_DEV_NAME, nl.ZeroTerminated(a.String())))
	// The kernel does not know the device, or its driver implements no info_get
	// (devlink_get_from_attrs_lock and devlink_nl_info_get_doit in net/devlink).
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read devlink info of %s: %w", a, err)
	}
	name, err := parseProfile(msg)
	if err != nil {
		return "", fmt.Errorf("read devlink info of %s: %w", a, err)
	}
	return name, nil
}

// find asks for the number that a family has in this kernel. It is 0 for none.
func (d *Devlink) find(name string) (uint16, error) {
	msg, err := d.ask(unix.GENL_ID_CTRL, nl.GENL_CTRL_VERSION, nl.GENL_CTRL_CMD_GETFAMILY,
		nl.NewRtAttr(nl.GENL_CTRL_ATTR_FAMILY_NAME, nl.ZeroTerminated(name)))
	if errors.Is(err, unix.ENOENT) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return parseFamily(msg)
}

// ask sends a generic netlink request and returns its one answer.
func (d *Devlink) ask(family uint16, version, command uint8, attrs ...*nl.RtAttr) ([]byte, error) {
	req := nl.NewNetlinkRequest(int(family), 0)
	req.Sockets = d.handle
	req.AddData(&nl.Genlmsg{Command: command, Version: version})
	for _, a := range attrs {
		req.AddData(a)
	}
	msgs, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return nil, err
	}
	if len(msgs) != 1 {
		return nil, fmt.Errorf("%d answers to one question", len(msgs))
	}
	return msgs[0], nil
}

func parseFamily(msg []byte) (uint16, error) {
	if len(msg) < nl.SizeofGenlmsg {
		return 0, errShort
	}
	var family uint16
	err := attributes(msg[nl.SizeofGenlmsg:], func(kind uint16, value []byte) error {
		if kind != nl.GENL_CTRL_ATTR_FAMILY_ID {
			return nil
		}
		if len(value) < 2 {
			return errShort
		}
		family = binary.NativeEndian.Uint16(value)
		return nil
	})
	return family, err
}

// parseProfile looks for the version among those that run. A package that is stored on the
// device, which may be another one, is listed beside them under the same name.
func parseProfile(msg []byte) (string, error) {
	if len(msg) < nl.SizeofGenlmsg {
		return "", errShort
	}
	profile := ""
	err := attributes(msg[nl.SizeofGenlmsg:], func(kind uint16, value []byte) error {
		if kind != nl.DEVLINK_ATTR_INFO_VERSION_RUNNING {
			return nil
		}
		var name, version string
		err := attributes(value, func(kind uint16, value []byte) error {
			switch kind {
			case nl.DEVLINK_ATTR_INFO_VERSION_NAME:
				name = unix.ByteSliceToString(value)
			case nl.DEVLINK_ATTR_INFO_VERSION_VALUE:
				version = unix.ByteSliceToString(value)
			}
			return nil
		})
		if name == "fw.app.name" {
			profile = version
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return profile, nil
}
