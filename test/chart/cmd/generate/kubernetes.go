package main

import (
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// reflected is the schema of a type of Kubernetes: of its fields, and no others. Structs are definitions
// that are referred to, since the same ones occur in many places.
func (w writer) reflected(t reflect.Type) (schema, error) {
	switch t {
	case reflect.TypeFor[intstr.IntOrString](): // all of them here are numbers of nodes or percentages
		return schema{"type": []string{"integer", "string"}, "minimum": 0, "pattern": "^(100|[0-9]{1,2})%$"}, nil
	case reflect.TypeFor[resource.Quantity]():
		return schema{"type": []string{"number", "string"}, "minimum": 0,
			"pattern": "^[0-9]+(\\.[0-9]+)?([numkMGTPE]|[KMGTPE]i|[eE][-+]?[0-9]+)?$"}, nil
	}
	if words, known := enumerations()[t]; known {
		return schema{"enum": words}, nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return w.reflected(t.Elem())
	case reflect.Bool:
		return schema{"type": "boolean"}, nil
	case reflect.String:
		return schema{"type": "string"}, nil
	case reflect.Int32, reflect.Int64:
		return schema{"type": "integer"}, nil
	case reflect.Slice, reflect.Map:
		of, err := w.reflected(t.Elem())
		if t.Kind() == reflect.Slice {
			return schema{"type": "array", "items": of}, err
		}
		return schema{"type": "object", "additionalProperties": of}, err
	case reflect.Struct:
		return w.structure(t)
	default:
		return nil, fmt.Errorf("no schema for the Go type %s: add it to reflected()", t)
	}
}

// enumerations are the strings of which the API server takes these alone. "" is where it has a default.
func enumerations() map[reflect.Type][]string {
	return map[reflect.Type][]string{
		reflect.TypeFor[appsv1.DaemonSetUpdateStrategyType](): {"RollingUpdate", "OnDelete"},
		reflect.TypeFor[corev1.TolerationOperator]():          {"", "Exists", "Equal", "Lt", "Gt"},
		reflect.TypeFor[corev1.TaintEffect]():                 {"", "NoSchedule", "PreferNoSchedule", "NoExecute"},
		reflect.TypeFor[corev1.NodeSelectorOperator]():        {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"},
		reflect.TypeFor[metav1.LabelSelectorOperator]():       {"In", "NotIn", "Exists", "DoesNotExist"},
	}
}

// structure is a reference to the schema of a struct.
func (w writer) structure(t reflect.Type) (schema, error) {
	reference := schema{"$ref": "#/definitions/" + t.Name()}
	if _, done := w.definitions[t.Name()]; done {
		return reference, nil
	}
	properties := schema{}
	w.definitions[t.Name()] = schema{"type": "object", "additionalProperties": false, "properties": properties}
	return reference, w.fields(t, properties)
}

// fields adds a struct's fields by the names that they have in YAML.
func (w writer) fields(t reflect.Type, properties schema) error {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case strings.Contains(options, "inline"):
			if err := w.fields(f.Type, properties); err != nil {
				return err
			}
		case name == "" || name == "-":
			return fmt.Errorf("field %s of %s has no name in JSON", f.Name, t)
		default:
			s, err := w.reflected(f.Type)
			if err != nil {
				return err
			}
			properties[name] = s
		}
	}
	return nil
}
