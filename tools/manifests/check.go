package main

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// newObject makes an empty object of each kind that the manifests may hold.
func newObject(apiVersion, kind string) any {
	switch apiVersion + " " + kind {
	case "apps/v1 DaemonSet":
		return &appsv1.DaemonSet{}
	case "networking.k8s.io/v1 NetworkPolicy":
		return &networkingv1.NetworkPolicy{}
	}
	return nil
}

// check decodes an object into Kubernetes' own type and refuses unknown and doubled fields.
func check(object []byte) error {
	var id struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(object, &id); err != nil {
		return fmt.Errorf("read its kind: %w", err)
	}
	into := newObject(id.APIVersion, id.Kind)
	if into == nil {
		return fmt.Errorf("%s %s is not a kind that this project deploys", id.APIVersion, id.Kind)
	}
	if err := yaml.UnmarshalStrict(object, into); err != nil {
		return fmt.Errorf("decode %s %s: %w", id.Kind, id.Metadata.Name, err)
	}
	return nil
}
