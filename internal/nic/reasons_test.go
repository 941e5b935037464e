package nic_test

import (
	"strings"
	"testing"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nicconfig"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sysfs"
)

// TestEveryReason: whatever the configuration, a candidate that is not declared has a reason with
// evidence, on every platform.
func TestEveryReason(t *testing.T) {
	configs := map[string]string{
		"VFs that no pool takes":      `{"resourceList":[{"resourceName":"a","selectors":{"vendors":["abcd"]}}]}`,
		"a pool for all":              `{"resourceList":[{"resourceName":"a","selectors":{"matchAll":true}}]}`,
		"accelerators only":           `{"resourceList":[{"resourceName":"a","deviceType":"accelerator","selectors":{"vendors":["8086"]}}]}`,
		"network controllers only":    `{"resourceList":[{"resourceName":"a","selectors":{"drivers":["vfio-pci"]}}]}`,
		"subfunctions only":           `{"resourceList":[{"resourceName":"a","deviceType":"auxNetDevice","selectors":{"auxTypes":["sf"]}}]}`,
		"less shares than devices":    `{"configList":[{"resourceName":"h","rdmaHcaMax":2,"selectors":{"vendors":["15b3"]}}]}`,
		"shares of nothing":           `{"configList":[{"resourceName":"h","rdmaHcaMax":2,"selectors":{"vendors":["abcd"]}}]}`,
		"whole devices and shares":    `{"resourceList":[{"resourceName":"a","selectors":{"drivers":["vfio-pci"]}}],"configList":[{"resourceName":"h","rdmaHcaMax":1,"selectors":{"drivers":["mlx5_core"]}}]}`,
		"the host's own not excluded": `{"resourceList":[{"resourceName":"a","allowHostInUse":true,"selectors":{"drivers":["mlx5_core"]}}]}`,
		"RDMA only, of what has none": `{"resourceList":[{"resourceName":"a","selectors":{"isRdma":true,"drivers":["ice"]}}]}`,
	}
	for _, p := range append(sim.Platforms(), sim.Adapters()) {
		t.Run(p.Name, func(t *testing.T) {
			n, err := sim.New(t.TempDir(), p)
			if err != nil {
				t.Fatal(err)
			}
			roots := n.Roots("nic-device-plugin")
			sys, err := sysfs.Open(roots.Sys)
			if err != nil {
				t.Fatal(err)
			}
			defer sys.Close()
			s := host.Source{Sys: sys, Dev: devfs.Dir(roots.Dev), Wanted: nic.Wants, Network: nic.Wants, Links: n.Links}.Look(nil)
			for what, text := range configs {
				c, err := nicconfig.Parse("config.json", []byte(text), nicconfig.Options{})
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				unexplained(t, what, s, nic.New(c).Declare(s, declare.Past{}))
			}
		})
	}
}

// unexplained complains of candidates of which a declaration says nothing.
func unexplained(t *testing.T, what string, s *host.Snapshot, d declare.Declaration) {
	t.Helper()
	said := map[string]bool{}
	for id := range d.Others {
		said[id] = true
	}
	for _, r := range d.Resources {
		for i := range r.Devices {
			said[r.Devices[i].Function.Address.String()] = true
		}
	}
	for _, f := range d.Findings {
		if strings.ContainsFunc(f.String(), func(r rune) bool { return r < ' ' }) {
			t.Errorf("%s: %q", what, f)
		}
		if f.Device != "" && len(f.Evidence) > 0 {
			id, _, _ := strings.Cut(f.Device, "::")
			said[id] = true
		}
	}
	for i := range s.Functions {
		if a := s.Functions[i].Address.String(); nic.Wants(s.Functions[i].Identity) && !said[a] {
			t.Errorf("%s: there is no reason for %s", what, a)
		}
	}
}
