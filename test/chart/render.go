// Package chart renders the Helm chart charts/passthrough with Helm's own library, as `helm template` and
// `helm install` do, and decodes what comes out into the types of Kubernetes. Its tests hold the chart
// against the kustomize bases of deploy/ and against rules that every object has to keep.
//
// It is a module of its own so that nothing else has Helm among its dependencies.
package chart

import (
	"bytes"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	"sigs.k8s.io/yaml"
)

// Release says how the chart is installed.
type Release struct {
	Name      string
	Namespace string
	// Kubernetes is the version of the cluster, such as "1.37.2".
	Kubernetes string
	// Values are those of the user, as YAML.
	Values string
}

// Rendered is what the chart makes of a release.
type Rendered struct {
	Objects []Object
	Notes   string
}

// Load reads a chart from its directory.
func Load(dir string) (*chartv2.Chart, error) {
	c, err := loader.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("load the chart in %s: %w", dir, err)
	}
	return c, nil
}

// Values reads values from YAML. A key that is there twice is an error.
func Values(text string) (map[string]any, error) {
	values := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	return values, nil
}

// Render renders a chart without a cluster. Every object is decoded strictly.
func Render(c *chartv2.Chart, r Release) (*Rendered, error) {
	values, err := Values(r.Values)
	if err != nil {
		return nil, err
	}
	version, err := common.ParseKubeVersion(r.Kubernetes)
	if err != nil {
		return nil, fmt.Errorf("read the version of Kubernetes: %w", err)
	}
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace, install.KubeVersion = r.Name, r.Namespace, version
	made, err := install.Run(c, values)
	if err != nil {
		return nil, fmt.Errorf("render the chart: %w", err)
	}
	rel, ok := made.(*release.Release)
	if !ok {
		return nil, fmt.Errorf("render the chart: it became a %T", made)
	}
	objects, err := Decode([]byte(rel.Manifest))
	if err != nil {
		return nil, err
	}
	return &Rendered{Objects: objects, Notes: rel.Info.Notes}, nil
}

// Decode reads objects from YAML documents. Those without an object are left out.
func Decode(text []byte) ([]Object, error) {
	var objects []Object
	for document := range bytes.SplitSeq(append([]byte("\n"), text...), []byte("\n---\n")) {
		if blank(document) {
			continue
		}
		o, err := decode(document)
		if err != nil {
			return nil, fmt.Errorf("%w:\n%s", err, bytes.TrimSpace(document))
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// blank says whether there is nothing but comments.
func blank(document []byte) bool {
	for line := range bytes.Lines(document) {
		if s := strings.TrimSpace(string(line)); s != "" && s != "---" && !strings.HasPrefix(s, "#") {
			return false
		}
	}
	return true
}
