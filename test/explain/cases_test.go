//go:build !kubernetes134

package explain

import (
	"fmt"
	"strings"
)

// pending is a pod that waits, with what else it takes.
type pending struct {
	name    string // of the pod
	in      string // its namespace, default where it is empty
	objects string
	// says are words of the scheduler that are waited for; event is a reason that is waited for in
	// their place. A pod of which nobody says anything is silent.
	says, event string
	silent      bool
	chains      int // that the answer has, 1 where it is 0; the first one counts
	// The step at which it stops, the check, and words of the answer.
	step, check, words string
}

// pod is a pod that asks for a resource, with more lines of its spec.
func pod(name, resource string, count int, spec ...string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: %[1]s}}
spec:
%s
  containers:
  - {name: c, image: none, resources: {limits: {%q: %d}}}
`, name, indent(spec), resource, count)
}

// claiming is a pod with a claim.
func claiming(name, claim string, spec ...string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
%s
  resourceClaims: [{name: device, %s}]
  containers:
  - {name: c, image: none, resources: {claims: [{name: device}]}}
`, name, indent(spec), claim)
}

func indent(lines []string) string {
	if len(lines) == 0 {
		return "  terminationGracePeriodSeconds: 0"
	}
	return "  " + strings.Join(lines, "\n  ")
}

// template is a claim template with one request.
func template(name, class, more string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s}
spec:
  spec:
    devices:
      requests: [{name: r, exactly: {deviceClassName: %s%s}}]
---`, name, class, more)
}

func from(template string) string { return "resourceClaimTemplateName: " + template }

// cases are the ways to wait.
func cases() []pending {
	return append(pluginCases(), claimCases()...)
}

func pluginCases() []pending {
	const insufficient = "Insufficient"
	return []pending{
		{name: "typo", objects: pod("typo", "demo.example/gpuu", 1), says: insufficient,
			step: "spelled the same", check: "NAM001", words: `did you mean "demo.example/gpu"`},
		{name: "prefix", objects: pod("prefix", "demo.example/vf_a", 1), says: insufficient,
			step: "spelled the same", check: "NAM003", words: "intel.com/vf_a"},
		{name: "case", objects: pod("case", "demo.example/GPU", 1), says: insufficient,
			step: "spelled the same", check: "NAM008", words: "demo.example/gpu"},
		{name: "no-plugin", objects: pod("no-plugin", "intel.com/vf_c", 1), says: insufficient,
			step: "plugin on a matching node", check: "DSP001", words: "nowhere"},
		{name: "never", objects: pod("never", "intel.com/vf_a", 1), says: insufficient,
			step: "registered", check: "NOD003", words: "no node has the key"},
		{name: "zero", objects: pod("zero", "demo.example/zero", 1), says: insufficient,
			step: "node allocatable", check: "NOD002", words: "node-gpu: capacity 0"},
		{name: "sick", objects: pod("sick", "demo.example/sick", 1), says: insufficient,
			step: "node allocatable", check: "NOD001", words: "capacity 2, allocatable 0"},
		{name: "huge", objects: pod("huge", "demo.example/gpu", 5), says: insufficient,
			step: "node allocatable", check: "POD013", words: "no node has more than 2"},
		{name: "in-use", objects: pod("in-use", "demo.example/gpu", 1), says: insufficient,
			step: "free", check: "POD012", words: "pod default/holder has 2"},
		{name: "selector", objects: pod("selector", "demo.example/free", 1, "nodeSelector: {pool: cpu}"),
			step: "scheduler constraints", check: "POD011", words: `label pool is not "cpu"`},
		{name: "taint", objects: pod("taint", "demo.example/tainted", 1),
			step: "scheduler constraints", check: "POD011", words: "dedicated=training:NoSchedule"},
		{name: "cordoned", objects: pod("cordoned", "demo.example/cordoned", 1),
			step: "scheduler constraints", check: "POD011", words: "cordoned"},
		{name: "cpu", objects: strings.Replace(pod("cpu", "demo.example/free", 1), `limits: {`, `limits: {cpu: 100, `, 1), says: "Insufficient cpu",
			step: "scheduler constraints", check: "POD018", words: "requests 100 of cpu"},
		{name: "memory", objects: strings.Replace(pod("memory", "demo.example/free", 1), `limits: {`, `limits: {memory: 300Gi, `, 1),
			says: "Insufficient memory", step: "scheduler constraints", check: "POD018", words: "of memory"},
		{name: "apart", objects: strings.Replace(pod("apart", "demo.example/free", 1), `limits: {`, `limits: {demo.example/tainted: 1, `, 1), chains: 2,
			step: "scheduler constraints", check: "POD010", words: "demo.example/tainted"},
		{name: "gated", objects: pod("gated", "demo.example/free", 1, "schedulingGates: [{name: example.com/wait}]"), silent: true,
			step: "scheduler constraints", check: "POD017", words: "example.com/wait"},
		{name: "volume", objects: pod("volume", "demo.example/free", 1, "volumes: [{name: v, persistentVolumeClaim: {claimName: missing}}]"),
			says: "persistentvolumeclaim", step: "scheduler constraints", check: "POD010", words: "missing"},
		{name: "affinity", objects: pod("affinity", "demo.example/free", 1, "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
			"[{topologyKey: pool, labelSelector: {matchLabels: {app: absent}}}]}}"),
			says: "affinity rules", step: "scheduler constraints", check: "POD010", words: "affinity rules"},
	}
}

func claimCases() []pending {
	const cannot = "cannot allocate all claims"
	return []pending{
		{name: "no-claim", objects: claiming("no-claim", "resourceClaimName: absent"), silent: true,
			step: "claim exists", check: "DRA012", words: "default/absent"},
		{name: "elsewhere", objects: claiming("elsewhere", "resourceClaimName: theirs"), silent: true,
			step: "claim exists", check: "DRA012", words: "other/theirs"},
		{name: "no-template", objects: claiming("no-template", from("absent")), event: "FailedResourceClaimCreation",
			step: "claim exists", check: "DRA012", words: "default/absent"},
		{name: "quota", in: "poor", objects: poor(template("quota", "demo.example", "") + claiming("quota", from("quota"))),
			event: "FailedResourceClaimCreation", step: "claim exists", check: "DRA005", words: "exceeded quota"},
		{name: "no-class", objects: template("no-class", "absent.example", "") + claiming("no-class", from("no-class")), says: "absent.example",
			step: "class exists", check: "DRA003", words: "absent.example"},
		{name: "no-device", objects: template("no-device", "demo.example", `, selectors: [{cel: {expression: "device.attributes['demo.example'].model == 'x'"}}]`) +
			claiming("no-device", from("no-device")), says: cannot,
			step: "devices published on nodes that match", check: "DRA004", words: "takes 2 of them"},
		{name: "bad-selector", objects: template("bad-selector", "demo.example", `, selectors: [{cel: {expression: "device.attributes['demo.example'].speed > 1"}}]`) +
			claiming("bad-selector", from("bad-selector")), says: "no such key",
			step: "devices published on nodes that match", check: "DRA004", words: "no such key"},
		{name: "not-there", objects: template("not-there", "demo.example", "") + claiming("not-there", from("not-there"), "nodeSelector: {pool: cpu}"),
			step: "devices published on nodes that match", check: "POD011", words: "label pool"},
		{name: "too-many", objects: template("too-many", "demo.example", ", count: 3") + claiming("too-many", from("too-many")), says: cannot,
			step: "devices published on nodes that match", check: "DRA005", words: "more than 2"},
		{name: "all-tainted", objects: template("all-tainted", "tainted.example", "") + claiming("all-tainted", from("all-tainted")), says: cannot,
			step: "free", check: "DRA005", words: "unhealthy=HST020:NoSchedule"},
		{name: "all-claimed", objects: template("all-claimed", "single.example", "") + claiming("all-claimed", from("all-claimed")), says: cannot,
			step: "free", check: "DRA005", words: "default/taken for pod owner"},
		{name: "extended", objects: pod("extended", "single.example/device", 1), says: cannot,
			step: "free", check: "POD010", words: "default/taken for pod owner"},
		{name: "implicit", objects: pod("implicit", "deviceclass.resource.kubernetes.io/empty.example", 1), says: cannot,
			step: "devices published on nodes that match", check: "DRA004", words: "empty.example"},
		{name: "unaligned", objects: unaligned + claiming("unaligned", from("unaligned")), says: cannot,
			step: "allocated", check: "DRA005", words: "constraints"},
		{name: "claim-cpu", objects: template("claim-cpu", "demo.example", "") +
			strings.Replace(claiming("claim-cpu", from("claim-cpu")), "resources: {", "resources: {requests: {cpu: 100}, ", 1), says: "Insufficient cpu",
			step: "allocated", check: "POD018", words: "requests 100 of cpu"},
		{name: "shared-away", objects: claiming("shared-away", "resourceClaimName: taken", "nodeSelector: {pool: cpu}"),
			step: "reserved", check: "DRA005", words: "node-gpu"},
	}
}

// unaligned wants two devices with one model, and each has its own.
const unaligned = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: unaligned}
spec:
  spec:
    devices:
      requests: [{name: r, exactly: {deviceClassName: demo.example, count: 2}}]
      constraints: [{requests: [r], matchAttribute: demo.example/model}]
---`

// poor puts objects into the namespace in which there may be no claim.
func poor(objects string) string {
	return strings.ReplaceAll(objects, "metadata: {", "metadata: {namespace: poor, ")
}
