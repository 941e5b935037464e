// Manifests renders a kustomization as `kubectl kustomize` does, on a machine without kubectl, and
// checks that every object has only fields that Kubernetes knows:
//
//	manifests deploy/kata-device-plugin > dist/kata-device-plugin.yaml
//
// The API server drops a misspelled field with at most a warning, so a protection that is
// misspelled is not there.
package main

import (
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

// run is main without the process around it.
func run(args []string, stdout io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: manifests DIRECTORY")
	}
	objects, err := render(args[0])
	if err != nil {
		return err
	}
	for i, object := range objects {
		if err := check(object); err != nil {
			return fmt.Errorf("check object %d of %s: %w", i+1, args[0], err)
		}
		if i > 0 {
			if _, err := io.WriteString(stdout, "---\n"); err != nil {
				return err
			}
		}
		if _, err := stdout.Write(object); err != nil {
			return err
		}
	}
	return nil
}

// render returns the objects of a kustomization as YAML, in its order.
func render(dir string) ([][]byte, error) {
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("render %s: %w", dir, err)
	}
	var objects [][]byte
	for _, r := range resources.Resources() {
		object, err := r.AsYAML()
		if err != nil {
			return nil, fmt.Errorf("write %s as YAML: %w", r.CurId(), err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
