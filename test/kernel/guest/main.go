// Command init is the first process of a machine. It stands in the place of everything that a node
// has beside the kernel and the plugin: it mounts, loads modules, starts the shipped plugin as a pod
// would, is its kubelet, changes the hardware by sysfs and QEMU, and reports to the host.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"kata-device-plugin/test/kernel/wire"
)

func main() {
	if len(os.Args) > 1 {
		if err := child(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "init:", err)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // the first process must not end
}

// child is what this program does as a process that the first one has started.
func child(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "become":
		return becomePlugin(args[1]) // it returns only to say why it cannot
	case len(args) == 3 && args[0] == "try":
		return tryAll(args[1], args[2])
	}
	return fmt.Errorf("start with %q: %w", args, os.ErrInvalid)
}

func run() error {
	if err := mounts(); err != nil {
		return err
	}
	p, err := openPort()
	if err != nil {
		return err
	}
	var orders wire.Orders
	if err := p.in.Decode(&orders); err != nil {
		return fmt.Errorf("read the host's orders: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	l := &lab{ctx: ctx, port: p, orders: orders, kubelet: newKubelet()}
	l.runAll(scenarios())
	p.send(wire.Line{Kind: wire.Done})
	// The host hangs up when it has read that; nothing is lost by then.
	_, err = p.file.Read(make([]byte, 1))
	_ = err // the end of the port is what is waited for
	return nil
}

// mounts mounts what a node's init mounts, and makes the directories of a node that runs kubelet.
func mounts() error {
	for _, m := range []struct{ fs, dir string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"}, {"tmpfs", "/tmp"},
	} {
		if err := unix.Mount(m.fs, m.dir, m.fs, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	if err := os.MkdirAll("/var/lib/kubelet/device-plugins", 0o750); err != nil {
		return err
	}
	// The root of an initramfs cannot be made private, and need not: nothing is mounted later.
	return os.MkdirAll("/var/run/cdi", 0o755)
}

// port is the connection to the host.
type port struct {
	file *os.File
	in   decoder
	out  encoder
}

// openPort finds the virtio port by its name. The driver may need a moment.
func openPort() (*port, error) {
	for range 100 {
		names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			if text(n) == wire.Port {
				f, err := os.OpenFile("/dev/"+filepath.Base(filepath.Dir(n)), os.O_RDWR|syscall.O_CLOEXEC, 0)
				if err != nil {
					return nil, fmt.Errorf("open the port to the host: %w", err)
				}
				return newPort(f), nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, fmt.Errorf("find the port to the host: %w", os.ErrNotExist)
}
