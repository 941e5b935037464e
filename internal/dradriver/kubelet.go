package dradriver

import (
	"context"
	"strings"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/podresources"
	"kata-device-plugin/internal/prepare"
)

// view asks kubelet, on the socket on which it tells who has what. A device plugin's device is
// one of ours if its ID is the PCI address, or a share of it (ADDRESS::N): so do the plugins of
// this project, and those that they take the place of.
func view(ctx context.Context, socket string) (prepare.View, error) {
	v := prepare.View{Plugged: map[string]string{}, Claims: map[string]prepare.Use{}, Named: map[string]bool{}}
	offered, err := podresources.Allocatable(ctx, socket)
	if err != nil {
		return v, err
	}
	for resource, ids := range offered {
		for _, id := range ids {
			if address, ok := deviceAddress(id); ok {
				v.Plugged[address] = "offered as " + resource
			}
		}
	}
	pods, err := podresources.Pods(ctx, socket)
	if err != nil {
		return v, err
	}
	for _, p := range pods {
		for resource, ids := range p.Devices {
			for _, id := range ids {
				if address, ok := deviceAddress(id); ok {
					v.Plugged[address] = "pod " + p.Namespace + "/" + p.Name + " has it as " + resource
				}
			}
		}
		for _, c := range p.Claims {
			name := c.Namespace + "/" + c.Name
			v.Named[name] = true
			addUses(v.Claims, name, c.CDI)
		}
	}
	return v, nil
}

// addUses adds the devices that CDI names of this driver stand for.
func addUses(uses map[string]prepare.Use, name string, qualified []string) {
	for _, q := range qualified {
		device, ours := strings.CutPrefix(q, cdi.QualifiedName(cdi.ClaimKind, ""))
		if !ours {
			continue
		}
		if uid, a, ok := cdi.ParseClaimed(device); ok && uid != "" {
			use := uses[uid]
			use.Claim = name
			use.Addresses = append(use.Addresses, a.String())
			uses[uid] = use
		}
	}
}

// deviceAddress is the PCI address that a device plugin's device is at.
func deviceAddress(id string) (string, bool) {
	text, _, _ := strings.Cut(id, "::")
	a, err := pci.ParseAddress(text)
	return text, err == nil && a.String() == text
}
