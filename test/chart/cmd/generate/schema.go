package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// schema is a JSON Schema. It is written with its keys in the order of the alphabet.
type schema map[string]any

// kinds are what @type may name, in Kubernetes' own types. A name with [] behind it is a list of them.
func kinds() map[string]reflect.Type {
	return map[string]reflect.Type{
		"Affinity":                reflect.TypeFor[corev1.Affinity](),
		"DaemonSetUpdateStrategy": reflect.TypeFor[appsv1.DaemonSetUpdateStrategy](),
		"LocalObjectReference":    reflect.TypeFor[corev1.LocalObjectReference](),
		"NetworkPolicyPeer":       reflect.TypeFor[networkingv1.NetworkPolicyPeer](),
		"ResourceRequirements":    reflect.TypeFor[corev1.ResourceRequirements](),
		"SELinuxOptions":          reflect.TypeFor[corev1.SELinuxOptions](),
		"Toleration":              reflect.TypeFor[corev1.Toleration](),
	}
}

// What a key of a label or annotation, and what the value of a label may be.
const (
	keyPattern   = `^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	labelPattern = `^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`
)

// writeSchema makes values.schema.json. A key that is not known is refused everywhere.
func writeSchema(values []*value) ([]byte, error) {
	w := writer{definitions: schema{}}
	top, err := w.group(values)
	if err != nil {
		return nil, err
	}
	// Helm adds this to the values of a chart that is a dependency of another. Nothing here reads it.
	if properties, ok := top["properties"].(schema); ok {
		properties["global"] = schema{"type": "object", "description": "What a chart above this one has for all its charts. It is not read."}
	}
	top["$schema"] = "http://json-schema.org/draft-07/schema#"
	top["title"] = "Values of the chart passthrough"
	top["definitions"] = w.definitions
	text, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(text, '\n'), nil
}

// writer makes schemas and keeps those of Kubernetes' types, which are used more than once.
type writer struct{ definitions schema }

// group is the schema of an object with just these keys. All have a default, so one that is missing was
// set to null. Templates do without it where it is one of Kubernetes' objects or lists, and nowhere else.
func (w writer) group(values []*value) (schema, error) {
	properties := schema{}
	required := []string{}
	for _, v := range values {
		s, err := w.value(v)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", v.line, v.path, err)
		}
		if v.words != "" {
			s["description"] = v.words
		}
		properties[v.key] = s
		if v.kind == "" {
			required = append(required, v.key)
		}
	}
	slices.Sort(required)
	return schema{"type": "object", "additionalProperties": false, "properties": properties, "required": required}, nil
}

// value is the schema of one value.
func (w writer) value(v *value) (schema, error) {
	switch {
	case v.children != nil:
		return w.group(v.children)
	case v.kind != "":
		return w.named(v.kind)
	case v.pattern != "":
		return schema{"type": "string", "pattern": v.pattern}, nil
	case v.enum != nil:
		return schema{"enum": v.enum}, nil
	case v.flags != nil:
		return schema{"type": "array", "items": schema{"type": "string", "pattern": arguments(v.flags)}}, nil
	}
	switch v.fallback.(type) {
	case bool:
		return schema{"type": "boolean"}, nil
	case string:
		return schema{"type": "string"}, nil
	}
	return nil, fmt.Errorf("no schema for a default of type %T: say by @type what it is", v.fallback)
}

// keyed is the schema of an object whose keys are those of labels. propertyNames would say it too, but of what
// it refuses Helm's library names another place.
func keyed(of schema) schema {
	return schema{"type": "object", "patternProperties": schema{keyPattern: of}, "additionalProperties": false}
}

// arguments is a pattern of arguments. A flag with = behind its name wants a value, and any other is on or off.
func arguments(flags []string) string {
	var words []string
	for _, flag := range flags {
		if strings.HasSuffix(flag, "=") {
			words = append(words, flag+".+")
		} else {
			words = append(words, flag+"(=(true|false))?")
		}
	}
	return "^--(" + strings.Join(words, "|") + ")$"
}

// named is the schema of a name after @type.
func (w writer) named(name string) (schema, error) {
	switch name {
	case "labels":
		return keyed(schema{"type": "string", "pattern": labelPattern}), nil
	case "annotations":
		return keyed(schema{"type": "string"}), nil
	}
	if name == "object" { // of a kind that Kubernetes itself does not have
		return schema{"type": "object"}, nil
	}
	item, list := strings.CutSuffix(name, "[]")
	t, known := kinds()[item]
	if !known {
		return nil, fmt.Errorf("@type %s is not known: add it to kinds()", name)
	}
	of, err := w.reflected(t)
	if err != nil {
		return nil, err
	}
	if list {
		return schema{"type": "array", "items": of}, nil
	}
	// In a schema of draft 7 nothing counts beside a $ref, and a description comes beside it.
	return schema{"allOf": []schema{of}}, nil
}
