package arch

import "fmt"

// networkRules are about which network the plugin is in, and what it may do there.
func networkRules(p plugin) []manifestRule {
	yes, no := true, false
	if p.hostNetwork != "" {
		return []manifestRule{{
			name: "host network",
			why:  "it needs " + p.hostNetwork + "; it looks no name up; and a NetworkPolicy, which does not bind it there, would look like a protection",
			check: func(d *deployment) error {
				return first(
					same("hostNetwork", show(d.pod().HostNetwork), "true"),
					same("dnsPolicy", d.pod().DNSPolicy, "Default"),
					same("there is a NetworkPolicy", d.NetworkPolicy != nil, false),
				)
			},
			breaks: []func(*deployment){
				func(d *deployment) { d.pod().HostNetwork = nil },
				func(d *deployment) { d.pod().HostNetwork = &no },
				func(d *deployment) { d.pod().DNSPolicy = "ClusterFirstWithHostNet" },
				func(d *deployment) { d.NetworkPolicy = &networkPolicy{} },
			},
		}}
	}
	if len(p.ports) > 0 {
		return []manifestRule{portRule(p)}
	}
	return []manifestRule{{
		name: "no network",
		why:  "it opens no TCP or UDP socket, so the network may as well refuse them; hostNetwork absent, not false, so that nobody has a line to flip",
		check: func(d *deployment) error {
			n := d.NetworkPolicy
			if n == nil {
				return fmt.Errorf("there is no NetworkPolicy")
			}
			return first(
				same("hostNetwork", show(d.pod().HostNetwork), "absent"),
				same("dnsPolicy", d.pod().DNSPolicy, ""),
				same("kind", n.APIVersion+" "+n.Kind, "networking.k8s.io/v1 NetworkPolicy"),
				same("pods", n.Spec.PodSelector.MatchLabels, map[string]string{"app.kubernetes.io/name": p.name}),
				same("policyTypes", n.Spec.PolicyTypes, []string{"Ingress", "Egress"}),
				same("rules", len(n.Spec.Ingress)+len(n.Spec.Egress), 0),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().HostNetwork = &yes },
			func(d *deployment) { d.pod().HostNetwork = &no },
			func(d *deployment) { d.pod().DNSPolicy = "None" },
			func(d *deployment) { d.NetworkPolicy = nil },
			func(d *deployment) { d.NetworkPolicy.Spec.PodSelector.MatchLabels = nil },
			func(d *deployment) { d.NetworkPolicy.Spec.PolicyTypes = []string{"Ingress"} },
			func(d *deployment) { d.NetworkPolicy.Spec.Egress = []any{map[string]any{}} },
		},
	}}
}

// portRule is about a program that is asked over the network, and asks others.
func portRule(p plugin) manifestRule {
	yes := true
	var want []networkPort
	for _, o := range p.ports {
		want = append(want, networkPort{"TCP", o.number})
	}
	types, why := []string{"Ingress", "Egress"}, "it reaches nobody"
	if p.api != "" {
		types, why = []string{"Ingress"}, "where it may connect to cannot be said, since the API server's address is no pod's"
	}
	return manifestRule{
		name: "ports",
		why:  "nothing else of it can be reached; " + why + "; hostNetwork absent, not false, so that nobody has a line to flip",
		check: func(d *deployment) error {
			n := d.NetworkPolicy
			if n == nil {
				return fmt.Errorf("there is no NetworkPolicy")
			}
			return first(
				same("hostNetwork", show(d.pod().HostNetwork), "absent"),
				same("dnsPolicy", d.pod().DNSPolicy, ""),
				same("kind", n.APIVersion+" "+n.Kind, "networking.k8s.io/v1 NetworkPolicy"),
				same("pods", n.Spec.PodSelector.MatchLabels, map[string]string{"app.kubernetes.io/name": p.name}),
				same("policyTypes", n.Spec.PolicyTypes, types),
				same("egress", len(n.Spec.Egress), 0),
				same("ingress", n.Spec.Ingress, []ingress{{Ports: want}}),
			)
		},
		breaks: []func(*deployment){
			func(d *deployment) { d.pod().HostNetwork = &yes },
			func(d *deployment) { d.pod().DNSPolicy = "None" },
			func(d *deployment) { d.NetworkPolicy = nil },
			func(d *deployment) { d.NetworkPolicy.Spec.PodSelector.MatchLabels = nil },
			func(d *deployment) { d.NetworkPolicy.Spec.PolicyTypes = nil },
			func(d *deployment) { d.NetworkPolicy.Spec.Ingress[0].Ports = nil }, // which is every port
			func(d *deployment) { d.NetworkPolicy.Spec.Ingress = nil },
			func(d *deployment) { d.NetworkPolicy.Spec.Egress = []any{map[string]any{}} },
		},
	}
}
