package render

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	"sigs.k8s.io/yaml"
)

// TestKueue: the file has a policy, the objects, the configuration and the notes.
func TestKueue(t *testing.T) {
	file := filepath.Join("testdata", "kueue.txt")
	sections := readSections(t, file)
	p, err := ParsePolicy("policy.yaml", []byte(sections[0].text))
	must(t, err)
	files, err := Kueue(p)
	must(t, err)
	got := []section{sections[0], {"objects", string(files.Objects)}, {"configuration", string(files.Configuration)},
		{"notes", strings.Join(files.Notes, "\n") + "\n"}}
	if golden.FlagUpdate() {
		writeSections(t, file, got)
	} else if diff := cmp.Diff(sections, got, cmp.AllowUnexported(section{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// kueueObject as far as it is written here, with the names of Kueue's API (kueue.x-k8s.io/v1beta2).
type kueueObjectFields struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		NodeLabels        map[string]string `json:"nodeLabels"`
		NamespaceSelector *struct{}         `json:"namespaceSelector"`
		ResourceGroups    []struct {
			CoveredResources []string `json:"coveredResources"`
			Flavors          []struct {
				Name      string `json:"name"`
				Resources []struct {
					Name         string `json:"name"`
					NominalQuota string `json:"nominalQuota"`
				} `json:"resources"`
			} `json:"flavors"`
		} `json:"resourceGroups"`
	} `json:"spec"`
}

// TestKueueRules: what Kueue's API demands of a ClusterQueue holds: each flavor exists, and lists the covered
// resources, all of them, in their order.
func TestKueueRules(t *testing.T) {
	sections := readSections(t, filepath.Join("testdata", "kueue.txt"))
	p, err := ParsePolicy("policy.yaml", []byte(sections[0].text))
	must(t, err)
	files, err := Kueue(p)
	must(t, err)
	flavors, queues := map[string]bool{}, 0
	for _, d := range split(files.Objects) {
		var o kueueObjectFields
		must(t, yaml.UnmarshalStrict(d.body, &o))
		if o.Kind == "ResourceFlavor" {
			flavors[o.Metadata.Name] = true
			continue
		}
		queues++
		if o.Spec.NamespaceSelector == nil {
			t.Error("the queue is for no namespace")
		}
		for _, g := range o.Spec.ResourceGroups {
			for _, f := range g.Flavors {
				var names []string
				for _, r := range f.Resources {
					names = append(names, r.Name)
				}
				if diff := cmp.Diff(g.CoveredResources, names); !flavors[f.Name] || diff != "" {
					t.Errorf("flavor %s, which there is: %v (-covered +listed):\n%s", f.Name, flavors[f.Name], diff)
				}
			}
		}
	}
	if queues != 1 || len(flavors) != 2 {
		t.Errorf("%d queues and %d flavors", queues, len(flavors))
	}
}

// TestKueueInEveryWay: the objects are the same whatever way the flavours go, so that one can change without
// the quotas.
func TestKueueInEveryWay(t *testing.T) {
	p := Default()
	p.Queue = &Queue{ClusterQueue: "q", Flavors: []ResourceFlavor{{Name: "f", Quotas: []Entry{{"nvidia.com/gpu", "8"}, {"cpu", "1"}}}}}
	want, err := Kueue(p)
	must(t, err)
	for _, via := range []Via{DRA, ExtendedResource} {
		got, err := Kueue(p.With(via))
		must(t, err)
		if string(got.Objects) != string(want.Objects) || string(got.Configuration) != string(want.Configuration) {
			t.Errorf("%s:\n%s\n%s", via, got.Objects, got.Configuration)
		}
	}
}

func TestKueueRefused(t *testing.T) {
	quotas := func(p *Policy) *Policy {
		f := ResourceFlavor{Name: "f"}
		for _, fl := range p.Flavours {
			f.Quotas = append(f.Quotas, Entry{fl.Resource, "1"})
		}
		p.Queue = &Queue{ClusterQueue: "q", Flavors: []ResourceFlavor{f}}
		return p
	}
	many := &Policy{}
	for i := range 17 {
		many.Flavours = append(many.Flavours, Flavour{Resource: fmt.Sprintf("a.example/r%d", i), Class: fmt.Sprintf("c%d", i)})
	}
	for _, tt := range []struct {
		what   string
		policy *Policy
		want   string
	}{
		{"no queue", Default(), "policy: kueue: is missing; name a clusterQueue, and resourceFlavors with their quotas"},
		{"a class of two", quotas(&Policy{Flavours: []Flavour{{Resource: "a.example/a", Class: "c"}, {Resource: "a.example/b", Class: "c", Selectors: []string{"x"}}}}),
			`policy: flavours: "c" is the class of a.example/a and of a.example/b, and Kueue counts by class; make a class of its own for each, with its selectors in the class`},
		{"many", quotas(many), "policy: kueue: has quotas of 17 kinds of devices, and Kueue maps 16; leave some without a quota"},
	} {
		files, err := Kueue(tt.policy)
		if _, ok := errors.AsType[Problems](err); !ok || files != nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, %v, want %s", tt.what, files, err, tt.want)
		}
	}
}
