package dradriver

import (
	"context"
	"strings"

	"kata-device-plugin/internal/cdi"
	"kata-device-plugin/internal/draname"
	"kata-device-plugin/internal/pci"
	"kata-device-plugin/internal/podresources"
	"kata-device-plugin/internal/prepare"
)

// view asks kubelet who has what. A device plugin's device is
// one of ours if its ID is the PCI address, or a share of it (ADDRESS::N): so do the plugins of
// this project, and those that they take the place of.
func view(ctx context.Context, kubelet *podresources.Client) (prepare.View, error) {
	v := prepare.View{Plugged: map[string]string{}, Claims: map[string]prepare.Use{}, Named: map[string]bool{}}
	offered, err := kubelet.Allocatable(ctx)
	if err != nil {
		return v, err
	}
	for _, d := range offered {
		if address, ok := deviceAddress(d.ID); ok {
			v.Plugged[address] = "offered as " + d.Resource
		}
	}
	pods, err := kubelet.Pods(ctx)
	if err != nil {
		return v, err
	}
	for _, p := range pods {
		for _, c := range p.Containers {
			addContainer(&v, p.Namespace+"/"+p.Name, c)
		}
	}
	return v, nil
}

// addContainer adds what a container of a pod has.
func addContainer(v *prepare.View, pod string, c podresources.Container) {
	for _, d := range c.Devices {
		if address, ok := deviceAddress(d.ID); ok {
			v.Plugged[address] = "pod " + pod + " has it as " + d.Resource
		}
	}
	for _, claim := range c.Claims {
		name := claim.Namespace + "/" + claim.Name
		v.Named[name] = true
		for _, d := range claim.Devices {
			addUses(v.Claims, name, d.CDI)
		}
	}
}

// addUses adds the devices that CDI names of this driver stand for.
func addUses(uses map[string]prepare.Use, name string, qualified []string) {
	for _, q := range qualified {
		device, ours := strings.CutPrefix(q, cdi.QualifiedName(draname.ClaimKind, ""))
		if !ours {
			continue
		}
		if uid, a, ok := draname.Parse(device); ok && uid != "" {
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
