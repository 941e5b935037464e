package render

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	resourcev1 "k8s.io/api/resource/v1"
)

// TestPolicyProblems: one mistake in a policy is one problem, with its line and what to do.
func TestPolicyProblems(t *testing.T) {
	file := filepath.Join("testdata", "policies.txt")
	var out []section
	sections := readSections(t, file)
	n := 0
	for i, s := range sections {
		if s.name == "problem" {
			continue
		}
		n++
		p, err := ParsePolicy("policy.yaml", []byte(s.text))
		problems, ok := errors.AsType[Problems](err)
		if !ok || len(problems) != 1 || p != nil {
			t.Errorf("%s: got %v and %v, want one problem", s.name, p, err)
			continue
		}
		if problem := problems[0]; problem.File != "policy.yaml" || problem.What == "" || problem.Remedy == "" || problem.Line == 0 && s.text != "" {
			t.Errorf("%s: %+v lacks something", s.name, problem)
		}
		got := err.Error() + "\n"
		if !golden.FlagUpdate() && (i+1 >= len(sections) || sections[i+1].text != got) {
			t.Errorf("%s:\n%s", s.name, got)
		}
		out = append(out, s, section{"problem", got})
	}
	if n < 35 {
		t.Errorf("only %d policies", n)
	}
	if golden.FlagUpdate() {
		writeSections(t, file, out)
	}
}

const begin = "apiVersion: katacontainers.io/v1alpha1\nkind: RenderPolicy\n"

func TestPolicy(t *testing.T) {
	got, err := ParsePolicy("p", []byte(begin+`
metadata: {name: x, annotations: {a: b}}
kubernetes: "v1.36.2"
featureGates: [DRAConsumableCapacity]
via: dra
flavours:
- resource: nvidia.com/GH100_H100
  deviceClass: gpu.vfio.katacontainers.io
  via: extended-resource
- resource: example.com/x
  deviceClass: x.example.com
  request: y
  selectors: [a]
  classSelectors: [b]
alignment:
- {resources: [example.com/x, nvidia.com/GH100_H100], matchAttribute: a.example/b, mode: Together}
kueue:
  clusterQueue: q
  resourceFlavors:
  - name: f
    nodeLabels: {a.example/b: c, zone: ""}
    quotas: {cpu: 1.5, example.com/x: 8}
`))
	must(t, err)
	want := &Policy{
		Kubernetes: 36, FeatureGates: []string{"DRAConsumableCapacity"},
		Flavours: []Flavour{
			{Resource: "nvidia.com/GH100_H100", Class: "gpu.vfio.katacontainers.io", Request: "gh100-h100",
				ClassSelectors: Default().Flavours[0].ClassSelectors, Via: ExtendedResource},
			{Resource: "example.com/x", Class: "x.example.com", Request: "y", Selectors: []string{"a"}, ClassSelectors: []string{"b"}, Via: DRA},
		},
		Alignments: []Alignment{{Resources: []string{"example.com/x", "nvidia.com/GH100_H100"}, Attribute: "a.example/b", Together: true}},
		Queue: &Queue{ClusterQueue: "q", Flavors: []ResourceFlavor{{Name: "f",
			NodeLabels: []Entry{{"a.example/b", "c"}, {"zone", ""}}, Quotas: []Entry{{"cpu", "1.5"}, {"example.com/x", "8"}}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPolicyWithoutFlavours: a policy that names none has those that are built in, in its own way.
func TestPolicyWithoutFlavours(t *testing.T) {
	got, err := ParsePolicy("p", []byte(begin+"via: dra\n"))
	must(t, err)
	if diff := cmp.Diff(Default().With(DRA), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p := Default(); p.With(DRA).Flavours[0].Via != DRA || p.Flavours[0].Via != DevicePlugin {
		t.Error("With changes the policy that it is called on")
	}
}

// TestDefaultClasses: the classes of the default policy are those that the driver is installed with.
func TestDefaultClasses(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "deploy", "kata-dra-driver", "deviceclasses.yaml"))
	must(t, err)
	installed := map[string][]string{}
	for _, o := range decode(t, string(data)) {
		c, ok := o.(*resourcev1.DeviceClass)
		if !ok {
			t.Fatalf("%T", o)
		}
		for _, s := range c.Spec.Selectors {
			installed[c.Name] = append(installed[c.Name], strings.TrimSpace(s.CEL.Expression))
		}
	}
	built := map[string][]string{}
	for _, f := range Default().Flavours {
		built[f.Class] = f.ClassSelectors
	}
	if diff := cmp.Diff(installed, built); diff != "" {
		t.Errorf("(-installed +built in):\n%s", diff)
	}
}

func TestVersions(t *testing.T) {
	for s, want := range map[string]Version{"1.34": 34, "v1.36.2": 36, "1.37.0-rc.1": 37, "1.99": 99} {
		if got, err := ParseVersion(s); got != want || err != nil {
			t.Errorf("%s: got %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "1", "2.0", "1.x", "1.-1", "34", "1.1000000000000"} {
		if got, err := ParseVersion(s); err == nil {
			t.Errorf("%q: got %v, want an error", s, got)
		}
	}
	for _, v := range []Via{DevicePlugin, DRA, ExtendedResource} {
		if got, err := ParseVia(string(v)); got != v || err != nil {
			t.Errorf("%s: got %s, %v", v, got, err)
		}
	}
	if _, err := ParseVia("DRA"); err == nil {
		t.Error("DRA is taken")
	}
}

// TestGates: each gate that a policy may name has a history, and none comes without one.
func TestGates(t *testing.T) {
	names := gateNames()
	for gate, history := range gates() {
		if !slices.Contains(names, gate) {
			t.Errorf("%s has a history and cannot be named", gate)
		}
		for v, before := oldestVersion, false; v <= newestVersion; v++ {
			on := history[v-oldestVersion].on()
			if before && !on {
				t.Errorf("%s is on and then off in %s", gate, v)
			}
			before = on
		}
		p := &Policy{Kubernetes: since(gate)}
		if what, _ := p.lacks(gate); what != "" {
			t.Errorf("%s is on since %s, and %s", gate, since(gate), what)
		}
		p.Kubernetes--
		if what, _ := p.lacks(gate); what == "" {
			t.Errorf("%s is on since %s, and before", gate, since(gate))
		}
	}
	if len(names) != len(gates()) {
		t.Errorf("%d names of %d gates", len(names), len(gates()))
	}
	if what, _ := (&Policy{Kubernetes: 50}).lacks("DRAExtendedResource"); what != "" {
		t.Errorf("in a later version it %s", what)
	}
}
