package nodeconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"kata-device-plugin/internal/manifest"
)

// Kubelet is what kubelet is told in its configuration. What it is told by flags is not in it.
type Kubelet struct {
	File string
	// Endpoint is where the container runtime listens, "" where nothing is said.
	Endpoint string
	// Policy is the topology manager's, none where nothing is said.
	Policy string
	// Scope is what the topology manager aligns, container where nothing is said.
	Scope string
	// MaxNUMANodes is for how many NUMA nodes the topology manager works.
	MaxNUMANodes int
	// Gates are the feature gates that are set.
	Gates map[string]bool
}

// defaultNUMANodes is kubelet's own limit (pkg/kubelet/cm/topologymanager, maxAllowableNUMANodes).
const defaultNUMANodes = 8

// KubeletFiles are where kubelet's configuration is: those of kubeadm and of EKS.
func KubeletFiles(kubeletDir string) []string {
	return []string{path.Join(kubeletDir, "config.yaml"), "/etc/kubernetes/kubelet/config.json",
		"/etc/kubernetes/kubelet/kubelet-config.json"}
}

// ReadKubelet reads the first of the files that exists. The error is fs.ErrNotExist where none does.
func ReadKubelet(tree fs.FS, kubeletDir string) (*Kubelet, error) {
	var missing error
	for _, name := range KubeletFiles(kubeletDir) {
		text, err := read(tree, name)
		if err == nil {
			k, err := parseKubelet(name, text)
			if err != nil {
				return nil, &Broken{name, err}
			}
			return k, nil
		}
		if missing == nil || !errors.Is(err, fs.ErrNotExist) {
			missing = err
		}
	}
	return nil, missing
}

func parseKubelet(name string, text []byte) (*Kubelet, error) {
	v, err := manifest.Parse(name, text)
	if err != nil {
		return nil, err
	}
	k := &Kubelet{File: name, Endpoint: v.Get("containerRuntimeEndpoint").Text(), Policy: "none", Scope: "container", MaxNUMANodes: defaultNUMANodes, Gates: map[string]bool{}}
	if policy := v.Get("topologyManagerPolicy").Text(); policy != "" {
		k.Policy = policy
	}
	if scope := v.Get("topologyManagerScope").Text(); scope != "" {
		k.Scope = scope
	}
	if limit := v.Get("topologyManagerPolicyOptions", "max-allowable-numa-nodes"); limit.Exists() {
		n, err := strconv.Atoi(limit.Text())
		if err != nil {
			return nil, manifest.Problem{Place: limit.Place(), What: fmt.Sprintf("max-allowable-numa-nodes is %q: write a number",
				limit.Text())}
		}
		k.MaxNUMANodes = n
	}
	for gate := range v.Get("featureGates").Entries() {
		on, err := strconv.ParseBool(gate.Text())
		if err != nil {
			return nil, manifest.Problem{Place: gate.Place(), What: fmt.Sprintf("the feature gate %s is %q: write true or false",
				gate.Key(), gate.Text())}
		}
		k.Gates[gate.Key()] = on
	}
	return k, nil
}

// Keep is what of kubelet's configuration this package reads, as JSON, and nothing else of it.
func Keep(text []byte) (map[string]any, error) {
	v, err := manifest.Parse("configuration", text)
	if err != nil {
		return nil, err
	}
	kept := map[string]any{}
	for _, key := range []string{"topologyManagerPolicy", "topologyManagerScope", "containerRuntimeEndpoint"} {
		if at := v.Get(key); at.Kind() == manifest.Text {
			kept[key] = at.Text()
		}
	}
	for _, key := range []string{"topologyManagerPolicyOptions", "featureGates"} {
		scalars := map[string]any{}
		for e := range v.Get(key).Entries() {
			switch e.Kind() {
			case manifest.Bool:
				scalars[e.Key()] = e.Text() == "true"
			case manifest.Text, manifest.Number:
				scalars[e.Key()] = e.Text()
			case manifest.Missing, manifest.Null, manifest.List, manifest.Map:
			}
		}
		if len(scalars) > 0 {
			kept[key] = scalars
		}
	}
	return kept, nil
}
