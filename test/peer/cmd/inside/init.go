package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"kata-device-plugin/test/peer/wire"
)

// first is the first process of the node's namespaces. It ends when its standard input
// does, which is when the test has ended, in whatever way; the kernel then ends every
// other process of the namespaces.
func first(specFile string) error {
	data, err := os.ReadFile(specFile)
	if err != nil {
		return fmt.Errorf("read what the node is to be: %w", err)
	}
	var spec wire.Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return fmt.Errorf("read what the node is to be: %w", err)
	}
	if os.Getpid() != 1 {
		return errors.New("init is to be the first process of a process namespace, and is not")
	}
	// Made before the mounts, since the path may be hidden by them; the test finds it
	// where it has put the state directory.
	if err := mounts(spec); err != nil {
		return err
	}
	if err := network(spec.Network); err != nil {
		return err
	}
	listener, err := net.Listen("unix", filepath.Join(wire.StateDir, wire.ControlEnd))
	if err != nil {
		return fmt.Errorf("listen for the test: %w", err)
	}
	s := newSupervisor()
	go s.reap()
	go s.serve(listener)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// network gives the namespace what its programs need: loopback, and as a rule an address
// to be known by. kubelet takes the node's from the default route's interface. Both ends
// of the pair of one that is alone stay in here, so it leads nowhere.
func network(kind string) error {
	lines := map[string][][]string{
		wire.Alone: {
			{"link", "add", wire.NodeInterface, "type", "veth", "peer", "name", "node1"},
			{"link", "set", wire.NodeInterface, "up"},
			{"link", "set", "node1", "up"},
			{"addr", "add", "192.0.2.10/24", "dev", wire.NodeInterface},
			{"route", "add", "default", "via", wire.BridgeAddress, "dev", wire.NodeInterface},
		},
		wire.Bridge: {
			{"link", "add", wire.BridgeName, "type", "bridge"},
			{"link", "set", wire.BridgeName, "up"},
			{"addr", "add", wire.BridgeAddress + "/24", "dev", wire.BridgeName},
			{"route", "add", wire.PodNet, "dev", wire.BridgeName},
		},
	}
	for _, line := range append([][]string{{"link", "set", "lo", "up"}}, lines[kind]...) {
		if err := ip(line...); err != nil {
			return err
		}
	}
	return nil
}

func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %v: %w: %s", args, err, out)
	}
	return nil
}
