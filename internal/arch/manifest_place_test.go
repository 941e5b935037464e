package arch

// modeLabel says to whom the devices of a node are handed out. Its prefix is one that the admission
// plugin NodeRestriction keeps from kubelets: a node does not change sides by itself.
const (
	modeLabel = "node-restriction.kubernetes.io/passthrough-mode"
	modeDRA   = "dra"
)

// nodesRule is about which nodes the program runs on.
func nodesRule(p plugin) manifestRule {
	linux := map[string]string{"kubernetes.io/os": "linux"}
	if p.everyNode != "" {
		return everyNodeRule(p, linux)
	}
	if p.mode != "" {
		linux[modeLabel] = p.mode
		return manifestRule{
			name: "nodes",
			why:  "it runs where somebody who may label nodes wants it, and nowhere else",
			check: func(d *deployment) error {
				return first(
					same("nodeSelector", d.pod().NodeSelector, linux),
					same("there is an affinity", d.pod().Affinity != nil, false),
				)
			},
			breaks: []func(*deployment){
				func(d *deployment) { delete(d.pod().NodeSelector, modeLabel) },
				func(d *deployment) { d.pod().NodeSelector[modeLabel] = "device-plugin" },
				func(d *deployment) { d.pod().NodeSelector = nil },
				func(d *deployment) { d.pod().Affinity = &affinity{} },
			},
		}
	}
	terms := func(d *deployment) *[]nodeSelectorTerm {
		if d.pod().Affinity == nil {
			return new([]nodeSelectorTerm)
		}
		return &d.pod().Affinity.NodeAffinity.Required.NodeSelectorTerms
	}
	return manifestRule{
		name: "nodes",
		why:  "a node that only runs Kata has no label but those that kubelet itself sets; and on those of the DRA driver it would keep the driver from its devices",
		check: func(d *deployment) error {
			return first(
				same("nodeSelector", d.pod().NodeSelector, linux),
				same("affinity", *terms(d), []nodeSelectorTerm{{MatchExpressions: []nodeExpression{
					{Key: modeLabel, Operator: "NotIn", Values: []string{modeDRA}},
				}}}),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().NodeSelector["nvidia.com/gpu.present"] = "true" },
			func(d *deployment) { d.pod().NodeSelector = nil },
			func(d *deployment) { d.pod().Affinity = nil },
			func(d *deployment) { (*terms(d))[0].MatchExpressions[0].Operator = "In" },
			func(d *deployment) { (*terms(d))[0].MatchExpressions[0].Key = "passthrough-mode" },
			// Terms are alternatives: a second one would let in what the first keeps out.
			func(d *deployment) { *terms(d) = append(*terms(d), nodeSelectorTerm{}) },
		},
	}
}

// everyNodeRule is about a program that runs whoever hands the devices out.
func everyNodeRule(p plugin, linux map[string]string) manifestRule {
	return manifestRule{
		name: "nodes",
		why:  p.everyNode + ", and a node that only runs Kata has no label but those that kubelet itself sets",
		check: func(d *deployment) error {
			return first(
				same("nodeSelector", d.pod().NodeSelector, linux),
				same("there is an affinity", d.pod().Affinity != nil, false),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().NodeSelector[modeLabel] = modeDRA },
			func(d *deployment) { d.pod().NodeSelector = nil },
			func(d *deployment) { d.pod().Affinity = &affinity{} },
		},
	}
}

// namespaceRule is about where the objects are.
func namespaceRule() manifestRule {
	return manifestRule{
		name: "namespace",
		why:  "hostPath needs a namespace at Pod Security level privileged, and system-node-critical may be limited to kube-system",
		check: func(d *deployment) error {
			namespaces := map[string]string{"DaemonSet": d.DaemonSet.Metadata.Namespace}
			if d.NetworkPolicy != nil {
				namespaces["NetworkPolicy"] = d.NetworkPolicy.Metadata.Namespace
			}
			for _, a := range d.API.Accounts {
				namespaces["ServiceAccount"] = a.Metadata.Namespace
			}
			// Either the kustomization gives all of them one, or each has its own.
			for kind, namespace := range namespaces {
				if err := same("namespace of the "+kind, d.Kustomization.Namespace+namespace, "kube-system"); err != nil {
					return err
				}
			}
			return nil
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.Kustomization.Namespace = "default" },
			func(d *deployment) { d.DaemonSet.Metadata.Namespace = "default" },
		},
	}
}
