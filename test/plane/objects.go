//go:build !kubernetes134

package plane

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	strict "sigs.k8s.io/yaml"
)

// Create creates the objects of a YAML text, of any kinds, in their order. Objects that name
// no namespace go to "default". The server decodes strictly: a field that it does not know
// fails the test, in contrast to one that is behind a gate, which it drops.
func (p *Plane) Create(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	created, err := p.create(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// CreateFile is Create for a file.
func (p *Plane) CreateFile(t testing.TB, path string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read objects to create: %v", err)
	}
	created, err := p.create(t.Context(), string(text))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return created
}

func (p *Plane) create(ctx context.Context, text string) ([]*unstructured.Unstructured, error) {
	objects, err := parse(text)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(p.admin)
	if err != nil {
		return nil, fmt.Errorf("make a client for any kind: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(p.client.Discovery())
	if err != nil {
		return nil, fmt.Errorf("ask which kinds there are: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for i, o := range objects {
		kind := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, fmt.Errorf("create %s %s: %w", kind.Kind, o.GetName(), err)
		}
		var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespace := o.GetNamespace()
			if namespace == "" {
				namespace = metav1.NamespaceDefault
			}
			resource = client.Resource(mapping.Resource).Namespace(namespace)
		}
		if objects[i], err = resource.Create(ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			return nil, fmt.Errorf("create %s %s: %w", kind.Kind, o.GetName(), err)
		}
	}
	return objects, nil
}

// parse reads YAML documents. A key that occurs twice is an error: of those the server would
// see only one.
func parse(text string) ([]*unstructured.Unstructured, error) {
	var list []*unstructured.Unstructured
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		o := &unstructured.Unstructured{}
		if err := strict.UnmarshalStrict(document, &o.Object); err != nil {
			return nil, fmt.Errorf("read YAML: %w: %s", err, bytes.TrimSpace(document))
		}
		if len(o.Object) > 0 {
			list = append(list, o)
		}
	}
}
