package check

import (
	"strings"

	"kata-device-plugin/internal/finding"
)

// Unattached is the finding that a message of Multus or a CNI plugin about a pod is of, and what to do.
func (w *World) Unattached(p *Workload, message string) (kind finding.Kind, help string, known bool) {
	for _, of := range []struct {
		words string
		kind  finding.Kind
		help  string
	}{
		{"vf pci addr is required", finding.AttachedNotRequested(), "request the network's resource in the pod, spelled as in its annotation"},
		{"find plugin", finding.NetworkConfigUnusable(), "install the CNI plugin on the node, or correct its type in the network"},
		{"network-attachment-definition", finding.NetworkMissing(),
			"create the network in the namespace, or write its namespace before its name"},
	} {
		if !strings.Contains(strings.ToLower(message), of.words) {
			continue
		}
		if of.kind.ID == finding.AttachedNotRequested().ID && w.requestsAttached(p) {
			of.help = "the pod requests what its networks name: look at the log of Multus on the node for why it did not get the device " +
				"from kubelet, and whether the network was changed after the pod was made"
		}
		return of.kind, of.help, true
	}
	return finding.Kind{}, "", false
}

// requestsAttached says whether a pod is known to request as many devices as its networks want.
func (w *World) requestsAttached(p *Workload) bool {
	attached := map[string]int64{}
	for _, a := range p.Attachments {
		n := w.networks[a.Namespace+"/"+a.Name]
		if n == nil {
			return false
		}
		if n.Resource != "" {
			attached[n.Resource]++
		}
	}
	for name, count := range attached {
		if want := p.want(name); want == nil || want.Count < count {
			return false
		}
	}
	return len(attached) > 0
}

// unattached are pods of which the node has said that a network could not be attached, for the reason of a
// check that looks at objects too. Where that has found the pod there, it is said once.
func (w *World) unattached(kind finding.Kind, all []Finding) []Finding {
	said := map[Ref]bool{}
	for i := range all {
		said[all[i].Object] = true
	}
	for _, p := range w.workloads {
		if p.started() || said[p.ref()] {
			continue
		}
		for _, reason := range []string{"FailedCreatePodSandBox", "NoNetworkFound"} {
			message := w.saying(p, reason)
			if of, help, known := w.Unattached(p, message.Text()); known && of.ID == kind.ID {
				f := found(p.ref(), message, "a network of %s could not be attached: %s", p.ref(), oneLine(message))
				all = append(all, f.advise("%s", help))
				break
			}
		}
	}
	return all
}
