package arch

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// apiObjects are those that only a program has that talks to the API server.
type apiObjects struct {
	Accounts       []serviceAccount
	Roles          []clusterRole
	Bindings       []clusterRoleBinding
	Policies       []admissionPolicy
	PolicyBindings []admissionPolicyBinding
	Classes        []deviceClass
}

type serviceAccount struct {
	APIVersion                   string   `json:"apiVersion"`
	Kind                         string   `json:"kind"`
	Metadata                     metadata `json:"metadata"`
	AutomountServiceAccountToken *bool    `json:"automountServiceAccountToken,omitempty"`
}

type clusterRole struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   metadata       `json:"metadata"`
	Rules      []policyAccess `json:"rules"`
}

type policyAccess struct {
	APIGroups     []string `json:"apiGroups"`
	Resources     []string `json:"resources"`
	ResourceNames []string `json:"resourceNames,omitempty"`
	Verbs         []string `json:"verbs"`
}

type clusterRoleBinding struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   metadata  `json:"metadata"`
	RoleRef    roleRef   `json:"roleRef"`
	Subjects   []subject `json:"subjects"`
}

type roleRef struct {
	APIGroup string `json:"apiGroup"`
	Kind     string `json:"kind"`
	Name     string `json:"name"`
}

type subject struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type admissionPolicy struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       struct {
		FailurePolicy    string    `json:"failurePolicy"`
		ParamKind        paramKind `json:"paramKind,omitzero"`
		MatchConstraints struct {
			ResourceRules []resourceRule `json:"resourceRules"`
		} `json:"matchConstraints"`
		MatchConditions []condition  `json:"matchConditions,omitempty"`
		Variables       []condition  `json:"variables"`
		Validations     []validation `json:"validations"`
	} `json:"spec"`
}

type paramKind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

type resourceRule struct {
	APIGroups   []string `json:"apiGroups"`
	APIVersions []string `json:"apiVersions"`
	Operations  []string `json:"operations"`
	Resources   []string `json:"resources"`
}

func (r resourceRule) String() string {
	const comma = ","
	return strings.Join(r.Operations, comma) + " " + strings.Join(r.APIGroups, comma) + "/" +
		strings.Join(r.APIVersions, comma) + "/" + strings.Join(r.Resources, comma)
}

type condition struct {
	Name       string `json:"name"`
	Expression string `json:"expression"`
}

type validation struct {
	Expression        string `json:"expression"`
	Message           string `json:"message,omitempty"`
	MessageExpression string `json:"messageExpression,omitempty"`
}

// paramRef has an empty selector where it stands for all there are.
type paramRef struct {
	Selector                struct{} `json:"selector"`
	ParameterNotFoundAction string   `json:"parameterNotFoundAction"`
}

type admissionPolicyBinding struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       struct {
		PolicyName        string    `json:"policyName"`
		ParamRef          *paramRef `json:"paramRef,omitempty"`
		ValidationActions []string  `json:"validationActions"`
	} `json:"spec"`
}

type deviceClass struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       struct {
		ExtendedResourceName string          `json:"extendedResourceName,omitempty"`
		Selectors            []classSelector `json:"selectors"`
	} `json:"spec"`
}

type classSelector struct {
	CEL struct {
		Expression string `json:"expression"`
	} `json:"cel"`
}

// readDeployment decodes the files that the kustomization names, which must be all there are.
func readDeployment(t *testing.T, p plugin) *deployment {
	t.Helper()
	dir := filepath.Join(repository(t), "deploy", p.name)
	var d deployment
	for _, document := range documents(t, filepath.Join(dir, "kustomization.yaml")) {
		decodeStrict(t, document, &d.Kustomization)
	}
	for _, name := range d.Kustomization.Resources {
		for _, document := range documents(t, filepath.Join(dir, name)) {
			d.read(t, document)
		}
	}
	return &d
}

// read adds an object of the kinds that there may be.
func (d *deployment) read(t *testing.T, document string) {
	t.Helper()
	var id struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(document), &id); err != nil {
		t.Fatal(err)
	}
	switch id.Kind {
	case "DaemonSet":
		decodeStrict(t, document, &d.DaemonSet)
	case "NetworkPolicy":
		d.NetworkPolicy = &networkPolicy{}
		decodeStrict(t, document, d.NetworkPolicy)
	case "ServiceAccount":
		decodeStrict(t, document, another(&d.API.Accounts))
	case "ClusterRole":
		decodeStrict(t, document, another(&d.API.Roles))
	case "ClusterRoleBinding":
		decodeStrict(t, document, another(&d.API.Bindings))
	case "ValidatingAdmissionPolicy":
		decodeStrict(t, document, another(&d.API.Policies))
	case "ValidatingAdmissionPolicyBinding":
		decodeStrict(t, document, another(&d.API.PolicyBindings))
	case "DeviceClass":
		decodeStrict(t, document, another(&d.API.Classes))
	default:
		t.Fatalf("no rule is about a %s:\n%s", id.Kind, document)
	}
}

// another makes one more of a kind.
func another[T any](all *[]T) *T {
	*all = append(*all, *new(T))
	return &(*all)[len(*all)-1]
}

// documents are the objects of a YAML file.
func documents(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(content), "\n---\n")
}

func decodeStrict(t *testing.T, document string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
		t.Fatalf("decode %v\n%s", err, document)
	}
}

// jsonFields are the names that the fields of a struct have in JSON.
func jsonFields(v any) []string {
	var all []string
	for f := range reflect.TypeOf(v).Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, name)
	}
	return all
}
