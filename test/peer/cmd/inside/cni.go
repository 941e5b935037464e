package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kata-device-plugin/test/peer/wire"
)

// cni is a CNI plugin. On a node that has joined a cluster a pod gets an interface on the
// node's bridge, by which it reaches the API server. On one that stands alone both ends of the
// pair are in the pod, and the address leads nowhere.
func cni(in io.Reader, out io.Writer) error {
	var conf struct {
		CNIVersion string `json:"cniVersion"`
	}
	if err := json.NewDecoder(in).Decode(&conf); err != nil {
		return fmt.Errorf("read the network's configuration: %w", err)
	}
	answer := json.NewEncoder(out)
	switch os.Getenv("CNI_COMMAND") {
	case "VERSION":
		return answer.Encode(map[string]any{"cniVersion": "1.0.0", "supportedVersions": []string{"0.4.0", "1.0.0"}})
	case "ADD":
	default:
		return nil // nothing is kept that CHECK could look at or DEL remove
	}
	for { // a test that holds it has a deadline, and so has kubelet
		if _, err := os.Stat(filepath.Join(wire.StateDir, wire.Hold)); err != nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	netns, link := os.Getenv("CNI_NETNS"), os.Getenv("CNI_IFNAME")
	h := fnv.New32a()
	_, _ = io.WriteString(h, os.Getenv("CNI_CONTAINERID"))
	n := h.Sum32()
	address := fmt.Sprintf("198.18.%d.%d/15", n>>8%250, 1+n%250)
	alone := [][]string{
		{"link", "add", link, "type", "veth", "peer", "name", "peer0"},
		{"link", "set", "peer0", "up"},
	}
	var joined [][]string
	if _, err := net.InterfaceByName(wire.BridgeName); err == nil {
		port := fmt.Sprintf("pod%08x", n)
		err = ip("link", "add", port, "type", "veth", "peer", "name", link, "netns", filepath.Base(netns))
		if err == nil {
			err = ip("link", "set", port, "master", wire.BridgeName, "up")
		}
		if err != nil {
			return err
		}
		alone, joined = nil, [][]string{{"route", "add", wire.BridgeNet, "dev", link}}
	}
	lines := slices.Concat([][]string{{"link", "set", "lo", "up"}}, alone, [][]string{
		{"link", "set", link, "up"},
		{"addr", "add", address, "dev", link},
	}, joined)
	for _, line := range lines {
		if err := ip(append([]string{"-n", filepath.Base(netns)}, line...)...); err != nil {
			return err
		}
	}
	return answer.Encode(map[string]any{
		"cniVersion": conf.CNIVersion,
		"interfaces": []any{map[string]string{"name": link, "sandbox": netns}},
		"ips":        []any{map[string]any{"address": address, "interface": 0}},
	})
}
