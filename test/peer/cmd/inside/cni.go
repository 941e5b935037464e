package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"time"

	"kata-device-plugin/test/peer/wire"
)

// cni is a CNI plugin that gives a pod an interface whose both ends are in the pod, with
// an address that leads nowhere: for pods that are to run, not to talk.
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
	for _, line := range [][]string{
		{"link", "set", "lo", "up"},
		{"link", "add", link, "type", "veth", "peer", "name", "peer0"},
		{"link", "set", link, "up"},
		{"link", "set", "peer0", "up"},
		{"addr", "add", address, "dev", link},
	} {
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
