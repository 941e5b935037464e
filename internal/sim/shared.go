package sim

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// misc are the shared nodes of drivers that are modules of their own: those of
// host.SharedNodes but for VFIO's, which is always there. Number and mode are the kernel's;
// that of rdma_cm is dynamic.
func misc(path string) (name string, c charNode, ok bool) {
	switch path {
	case "/dev/vhost-net":
		return "vhost-net", charNode{miscMajor, 238, "vhost-net", 0o600}, true
	case "/dev/net/tun":
		return "tun", charNode{miscMajor, 200, "net/tun", 0o600}, true
	case "/dev/infiniband/rdma_cm":
		return "rdma_cm", charNode{miscMajor, 122, "infiniband/rdma_cm", 0o666}, true
	}
	return "", charNode{}, false
}

// AddShared makes a node of host.SharedNodes appear, as loading its module does.
func (n *Node) AddShared(path string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addShared(path)
}

func (n *Node) addShared(path string) error {
	name, c, ok := misc(path)
	if !ok {
		return fmt.Errorf("add %s: %w", path, unix.EINVAL)
	}
	dir := "devices/virtual/misc/" + name
	err := errors.Join(
		n.ensureDir("devices/virtual/misc", "class/misc"),
		n.publish(dir, nil, []file{
			{name: "uevent", mode: 0o644, text: n.ueventText(c.major, c.minor, c.path)},
		}, map[string]string{"subsystem": "class/misc"}),
		n.link("class/misc/"+name, dir),
		n.replaceFile(n.sys(dir+"/dev"), 0o444, n.devText(c.major, c.minor)),
		n.linkChar(c.major, c.minor, dir),
		n.addNode(&c),
	)
	if err != nil {
		return fmt.Errorf("add %s: %w", path, err)
	}
	return nil
}

// RemoveShared makes it vanish.
func (n *Node) RemoveShared(path string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, c, ok := misc(path)
	if !ok {
		return fmt.Errorf("remove %s: %w", path, unix.EINVAL)
	}
	if _, err := os.Lstat(n.dev(c.path)); err != nil {
		return fmt.Errorf("remove %s: %w", path, unix.ENOENT)
	}
	err := errors.Join(n.dropCharNode(&c), n.unlinkChar(c.major, c.minor),
		n.unlink("class/misc/"+name), n.withdraw("devices/virtual/misc/"+name))
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}
