package check_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/manifest"
)

// The parts that traps are made of.
const (
	sriovConfig = `apiVersion: v1
kind: ConfigMap
metadata: {name: sriovdp-config, namespace: kube-system}
data:
  config.json: |
    {"resourceList": [{"resourceName": "vf_a", "selectors": {"vendors": ["8086"]}}]}
`
	rdmaConfig = `apiVersion: v1
kind: ConfigMap
metadata: {name: rdma-devices, namespace: kube-system}
data:
  config.json: |
    {"configList": [{"resourceName": "hca", "rdmaHcaMax": 63, "selectors": {"vendors": ["15b3"]}}]}
`
	injector = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: network-resources-injector-config}
webhooks: [{name: network-resources-injector-config.k8s.cni.cncf.io, failurePolicy: Ignore}]
`
	everything = "node,configmap,networkattachmentdefinition"
)

// plugin is the SR-IOV plugin's DaemonSet with arguments.
func plugin(args string) string {
	return `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: sriovdp, namespace: kube-system}
spec:
  template:
    spec:
      containers:
      - {name: dp, image: sriov-network-device-plugin, args: ` + args + `, volumeMounts: [{name: cfg, mountPath: /etc/pcidp}]}
      volumes: [{name: cfg, configMap: {name: sriovdp-config}}]
`
}

func network(name, resource, kind string) string {
	annotations := ""
	if resource != "" {
		annotations = ", annotations: {k8s.v1.cni.cncf.io/resourceName: " + resource + "}"
	}
	return "apiVersion: k8s.cni.cncf.io/v1\nkind: NetworkAttachmentDefinition\nmetadata: {name: " + name + ", namespace: default" + annotations +
		"}\nspec: {config: '{\"type\":\"" + kind + "\"}'}\n"
}

// pod is a pod with more metadata, limits, and more fields.
func pod(name, meta, limits, more string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: default" + meta +
		"}\nspec:\n  containers: [{name: c, image: x, resources: {limits: {" + limits + "}}}]\n" + more
}

func attaches(networks string) string {
	return ", annotations: {k8s.v1.cni.cncf.io/networks: " + networks + "}"
}

func node(name, devices string) string {
	return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + "}\nstatus: {capacity: {" + devices + "}, allocatable: {" + devices + "}}\n"
}

type trap struct {
	name     string
	complete string
	docs     []string
	want     []string
}

// TestTraps: what looks wrong and is right, by the numbers of the list that it was collected in.
func TestTraps(t *testing.T) {
	for _, tt := range slices.Concat(nameTraps(), objectTraps(), liveTraps()) {
		t.Run(tt.name, func(t *testing.T) {
			set := load(t, strings.Join(tt.docs, "---\n"), strings.Split(tt.complete, ",")...)
			got := found(check.Run(set, check.Options{}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func nameTraps() []trap {
	return []trap{
		{"1 no prefix is intel.com or rdma", everything, []string{sriovConfig, rdmaConfig, network("a", "intel.com/vf_a", "sriov"),
			pod("p", attaches("a"), `intel.com/vf_a: "1", rdma/hca: "1"`, "")}, nil},
		{"2 one hyphen and =", everything, []string{sriovConfig, plugin(`["-resource-prefix=acme.io"]`), pod("p", "", `acme.io/vf_a: "1"`, "")}, nil},
		{"2 two hyphens and the next argument", everything, []string{sriovConfig, plugin(`["--resource-prefix", acme.io]`), pod("p", "", `acme.io/vf_a: "1"`, "")}, nil},
		{"2 a line for a shell", everything, []string{sriovConfig, plugin(`["exec sriovdp --resource-prefix=acme.io --log-level=10"]`), pod("p", "", `acme.io/vf_a: "1"`, "")}, nil},
		{"2 the old name is wrong then", "", []string{sriovConfig, plugin(`["-resource-prefix=acme.io"]`), pod("p", "", `intel.com/vf_a: "1"`, "")},
			[]string{"NAM003 error pod default/p"}},
		{"2 a prefix of its own stays", everything, []string{strings.Replace(sriovConfig, `"vf_a"`, `"vf_a", "resourcePrefix": "intel.com"`, 1),
			plugin(`["-resource-prefix=acme.io"]`), pod("p", "", `intel.com/vf_a: "1"`, "")}, nil},
		{"3 macvlan without a resource, and a share by hand", everything, []string{rdmaConfig, network("mv", "", "macvlan"),
			pod("p", attaches("mv"), `rdma/hca: "1"`, "")}, nil},
		{"6 upper case is another name", everything, []string{strings.Replace(sriovConfig, "vf_a", "VF_A", 1), pod("p", "", `intel.com/VF_A: "1"`, "")}, nil},
		{"6 hyphen and underscore are two resources", everything, []string{strings.Replace(sriovConfig, `{"resourceName": "vf_a", "selectors": {"vendors": ["8086"]}}`,
			`{"resourceName": "vf_a", "selectors": {"vendors": ["8086"]}}, {"resourceName": "vf-a", "selectors": {"vendors": ["15b3"]}}`, 1),
			pod("p", "", `intel.com/vf_a: "1", intel.com/vf-a: "1"`, "")}, nil},
		{"7 a quota's name has requests. before it", everything, []string{sriovConfig,
			"apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: default}\nspec: {hard: {requests.intel.com/vf_a: \"4\"}}\n"}, nil},
		{"8 another vendor's plugin is on the node", everything, []string{sriovConfig, node("n", `example.com/fpga: "2"`), pod("p", "", `example.com/fpga: "1"`, "")}, nil},
		{"9 a scheduler extender answers for it", everything, []string{sriovConfig, pod("p", "", `example.com/slots: "1"`, ""),
			"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders: [{managedResources: [{name: example.com/slots, ignoredByScheduler: true}]}]\n"}, nil},
		{"9 the same within a ConfigMap", everything, []string{pod("p", "", `example.com/slots: "1"`, ""),
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: s, namespace: kube-system}\ndata:\n  c.yaml: |\n    extenders:\n    - managedResources:\n      - {name: example.com/slots, ignoredByScheduler: true}\n"}, nil},
		{"9 one that the scheduler counts is on no node", everything, []string{pod("p", "", `example.com/slots: "1"`, ""),
			"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nextenders: [{managedResources: [{name: example.com/slots}]}]\n"},
			[]string{"NAM001 error pod default/p"}},
		{"10 a class maps it, or is it", everything, []string{pod("p", "", `example.com/gpu: "1", deviceclass.resource.kubernetes.io/gpu: "1"`, ""),
			"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {extendedResourceName: example.com/gpu}\n"}, nil},
		{"10 there is no such class", everything, []string{pod("p", "", `deviceclass.resource.kubernetes.io/gpus: "1"`, ""),
			"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n"}, []string{"NAM001 error pod default/p"}},
		{"11 settings make shared and MIG names", everything, []string{strings.Replace(plugin("[]"), "sriov-network-device-plugin", "nvcr.io/nvidia/k8s-device-plugin:v0.18.0", 1),
			pod("p", "", `nvidia.com/gpu.shared: "1", nvidia.com/mig-1g.10gb: "1"`, "")}, nil},
		{"11 and are not taken for each other", everything, []string{node("n", `nvidia.com/mig-1g.10gb: "7"`), pod("p", "", `nvidia.com/mig-2g.10gb: "1"`, "")},
			[]string{"NAM001 error pod default/p"}},
		{"12 a rename leaves a key with 0", everything, []string{sriovConfig, node("n", `intel.com/vf_a: "4", openshift.io/vf_a: "0"`)}, []string{"NOD007 note node n"}},
		{"12 a class takes over", everything, []string{node("n", `example.com/gpu: "0"`),
			"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {extendedResourceName: example.com/gpu}\n"}, []string{"NOD002 note node n"}},
		{"16 excludeTopology is deliberate", everything, []string{strings.Replace(sriovConfig, `"vf_a",`, `"vf_a", "excludeTopology": true,`, 1)}, nil},
	}
}

func objectTraps() []trap {
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: default}\nspec:\n  template:\n    metadata: {annotations: {k8s.v1.cni.cncf.io/networks: a}}\n" +
		"    spec: {containers: [{name: c, image: x}]}\n"
	return []trap{
		{"4 the injector will see to a template", everything, []string{injector, sriovConfig, network("a", "intel.com/vf_a", "sriov"), deployment},
			[]string{"NAM004 note deployment default/d"}},
		{"4 it has had its turn with a live pod", everything, []string{injector, sriovConfig, network("a", "intel.com/vf_a", "sriov"),
			pod("p", ", uid: u"+attaches("a"), "", "status: {phase: Pending}\n")}, []string{"NAM004 error pod default/p"}},
		{"5 the injector knows another key", everything, []string{injector, sriovConfig, strings.Replace(network("a", "intel.com/vf_a", "sriov"), "k8s.v1.cni.cncf.io/resourceName", "acme.io/resource", 1),
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: network-resources-injector, namespace: kube-system}\nspec: {template: {spec: {containers: [{name: w, image: network-resources-injector, " +
				"args: ['-network-resource-name-keys=k8s.v1.cni.cncf.io/resourceName,acme.io/resource']}]}}}\n", pod("p", attaches("a"), `intel.com/vf_a: "1"`, "")}, nil},
		{"19 KubeVirt makes a machine's requests", everything, []string{sriovConfig, network("a", "intel.com/vf_a", "sriov"),
			"apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: vm, namespace: default}\nspec:\n  template:\n    spec:\n      domain: {devices: {}}\n      networks: [{name: n, multus: {networkName: a}}]\n"}, nil},
		{"19 and names its devices", "", []string{sriovConfig,
			"apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: vm, namespace: default}\nspec:\n  template:\n    spec:\n      domain: {devices: {gpus: [{name: g, deviceName: openshift.io/vf_a}]}}\n"},
			[]string{"NAM003 error virtualmachine default/vm"}},
		{"20 all forms of attachment", everything, []string{sriovConfig, network("a", "intel.com/vf_a", "sriov"), network("b", "intel.com/vf_a", "sriov"),
			strings.Replace(network("c", "intel.com/vf_a", "sriov"), "namespace: default", "namespace: kube-system", 1),
			pod("short", attaches("default/a@net1"), `intel.com/vf_a: "1"`, ""),
			pod("json", attaches(`'[{"name": "a", "namespace": "default", "interface": "net1"}]'`), `intel.com/vf_a: "1"`, ""),
			pod("main", ", annotations: {v1.multus-cni.io/default-network: c}", `intel.com/vf_a: "1"`, "")}, nil},
		{"22 old spellings in what repeats the object", everything, []string{sriovConfig, strings.Replace(network("a", "intel.com/vf_a", "sriov"), "annotations: {",
			`annotations: {kubectl.kubernetes.io/last-applied-configuration: '{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/resourceName":"old.io/vf_a"}}}', `, 1),
			pod("p", `, managedFields: [{manager: m, fieldsV1: {"f:spec": {"k:{\"old.io/vf_a\"}": {}}}}]`+attaches("a"), `intel.com/vf_a: "1"`, "")}, nil},
		{"24 implicit names have rules of their own", everything, []string{
			"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\nspec: {}\n",
			"apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default}\nspec:\n  containers:\n  - {name: a, image: x, resources: {requests: {deviceclass.resource.kubernetes.io/gpu: 500m}}}\n" +
				"  - {name: b, image: x, resources: {requests: {deviceclass.resource.kubernetes.io/gpu: \"1\"}, limits: {deviceclass.resource.kubernetes.io/gpu: \"2\"}}}\n"}, nil},
		{"25 braces of a template", everything, []string{"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n    resources: {limits: {x/y: 1}}\n    image: {{ .Values.image }}\n"},
			[]string{"EVD001 note "}},
		{"25 braces in quotes", everything, []string{network("a", `"{{ .Values.prefix }}/vf_a"`, "sriov")}, []string{"EVD001 note "}},
	}
}

func liveTraps() []trap {
	running := func(name, node string) string {
		return pod(name, ", uid: u"+name, `rdma/hca: "1"`, "  nodeName: "+node+"\nstatus: {phase: Running, containerStatuses: [{name: c, allocatedResourcesStatus: "+
			"[{name: rdma/hca, resources: [{resourceID: \"3\", health: Healthy}]}]}]}\n")
	}
	return []trap{
		{"13 one address on two nodes, in a plugin and in DRA", everything, []string{strings.Replace(sriovConfig, `{"vendors": ["8086"]}`, `{"pciAddresses": ["0000:3b:00.0"]}`, 1),
			"apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: d, nodeName: other, devices: [{name: a, attributes: {resource.kubernetes.io/pciBusID: {string: \"0000:3b:00.0\"}}}]}\n"}, nil},
		{"14 a counter is no device", everything, []string{rdmaConfig, node("n", `rdma/hca: "63"`), node("m", `rdma/hca: "63"`), running("p", "n"), running("q", "n"), running("r", "m")}, nil},
		{"21 pods that have ended hold nothing", everything, []string{sriovConfig, node("n", `intel.com/vf_a: "1"`),
			pod("old", ", uid: u1", `intel.com/vf_a: "1"`, "  nodeName: n\nstatus: {phase: Succeeded}\n"),
			pod("failed", ", uid: u2", `intel.com/vf_a: "1"`, "  nodeName: n\nstatus: {phase: Failed}\n"),
			pod("new", ", uid: u3", `intel.com/vf_a: "1"`, "  nodeName: n\nstatus: {phase: Running}\n")}, nil},
	}
}

// TestFilesOfNodes: what a node's files hold is not misread as objects. With the numbers of the
// list: 15 two NUMA nodes of one device, 17 a UID that is gone, 18 healthy devices only, and
// 23 a CDI spec that covers another one.
func TestFilesOfNodes(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"podresources.json": `{"pod_resources": [{"name": "p", "namespace": "default", "containers": [{"name": "c", "devices": [` +
			`{"resource_name": "intel.com/vf_a", "device_ids": ["d"], "topology": {"nodes": [{"ID": 0}]}}, {"resource_name": "intel.com/vf_a", "device_ids": ["d"], "topology": {"nodes": [{"ID": 1}]}}]}]}]}`,
		"checkpoint.json": `{"Data": {"PodDeviceEntries": [{"PodUID": "gone", "ContainerName": "c", "ResourceName": "intel.com/vf_a", "DeviceIDs": {"-1": ["d"]}}], "RegisteredDevices": {"intel.com/vf_a": ["e"]}}, "Checksum": 1}`,
		"etc-cdi.yaml":    "cdiVersion: 0.6.0\nkind: vendor.com/gpu\ndevices: [{name: a, containerEdits: {env: [A=1]}}]\n",
		"run-cdi.yaml":    "cdiVersion: 0.6.0\nkind: vendor.com/gpu\ndevices: [{name: a, containerEdits: {env: [A=2]}}]\n",
		"node.yaml":       node("n", `intel.com/vf_a: "1"`),
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	set, err := manifest.Load([]string{dir}, manifest.Options{})
	must(t, err)
	r := check.Run(set, check.Options{})
	if len(set.Objects) != 1 || len(set.Inputs) != 5 || len(r.Findings) != 0 {
		t.Errorf("%d objects of %d inputs, findings %v", len(set.Objects), len(set.Inputs), found(r))
	}
}
