package arch

import (
	"encoding/json"
	"fmt"
	"testing"
)

// These types are the part of Kubernetes' that the manifests may use. They are decoded strictly: a
// field that is not here is refused, so whoever adds one to a manifest adds it here, and thinks of
// its rule. Fields that must stay absent are here too, so that a test can set them.

type metadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
}

type daemonSet struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       struct {
		Selector        selector `json:"selector"`
		MinReadySeconds int      `json:"minReadySeconds"`
		UpdateStrategy  struct {
			Type          string `json:"type"`
			RollingUpdate struct {
				MaxSurge       any `json:"maxSurge"`
				MaxUnavailable any `json:"maxUnavailable"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
		Template struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec pod `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type selector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type pod struct {
	PriorityClassName             string            `json:"priorityClassName"`
	Tolerations                   []toleration      `json:"tolerations"`
	NodeSelector                  map[string]string `json:"nodeSelector,omitempty"`
	Affinity                      *affinity         `json:"affinity,omitempty"`
	AutomountServiceAccountToken  *bool             `json:"automountServiceAccountToken,omitempty"`
	ServiceAccountName            string            `json:"serviceAccountName,omitempty"`
	EnableServiceLinks            *bool             `json:"enableServiceLinks,omitempty"`
	TerminationGracePeriodSeconds *int              `json:"terminationGracePeriodSeconds,omitempty"`
	HostNetwork                   *bool             `json:"hostNetwork,omitempty"`
	HostPID                       *bool             `json:"hostPID,omitempty"`
	HostIPC                       *bool             `json:"hostIPC,omitempty"`
	HostUsers                     *bool             `json:"hostUsers,omitempty"`
	DNSPolicy                     string            `json:"dnsPolicy,omitempty"`
	RuntimeClassName              string            `json:"runtimeClassName,omitempty"`
	InitContainers                []container       `json:"initContainers,omitempty"`
	Containers                    []container       `json:"containers"`
	Volumes                       []volume          `json:"volumes"`
}

type affinity struct {
	NodeAffinity struct {
		Required struct {
			NodeSelectorTerms []nodeSelectorTerm `json:"nodeSelectorTerms"`
		} `json:"requiredDuringSchedulingIgnoredDuringExecution"`
	} `json:"nodeAffinity"`
}

type nodeSelectorTerm struct {
	MatchExpressions []nodeExpression `json:"matchExpressions"`
}

type nodeExpression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

type toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator"`
	Effect   string `json:"effect"`
}

type container struct {
	Name            string          `json:"name"`
	Image           string          `json:"image"`
	ImagePullPolicy string          `json:"imagePullPolicy"`
	Command         []string        `json:"command,omitempty"`
	Args            []string        `json:"args,omitempty"`
	Env             []envVar        `json:"env,omitempty"`
	EnvFrom         []any           `json:"envFrom,omitempty"`
	Ports           []containerPort `json:"ports,omitempty"`
	SecurityContext securityContext `json:"securityContext"`
	Resources       struct {
		Requests map[string]string `json:"requests"`
		Limits   map[string]string `json:"limits"`
	} `json:"resources"`
	StartupProbe   *probe        `json:"startupProbe,omitempty"`
	LivenessProbe  *probe        `json:"livenessProbe,omitempty"`
	ReadinessProbe *probe        `json:"readinessProbe,omitempty"`
	VolumeMounts   []volumeMount `json:"volumeMounts"`
}

type envVar struct {
	Name      string `json:"name"`
	Value     string `json:"value,omitempty"`
	ValueFrom struct {
		FieldRef struct {
			FieldPath string `json:"fieldPath"`
		} `json:"fieldRef"`
	} `json:"valueFrom"`
}

type containerPort struct {
	Name          string `json:"name"`
	ContainerPort int    `json:"containerPort"`
	HostPort      int    `json:"hostPort,omitempty"`
}

type securityContext struct {
	RunAsUser                *int  `json:"runAsUser,omitempty"`
	RunAsGroup               *int  `json:"runAsGroup,omitempty"`
	RunAsNonRoot             *bool `json:"runAsNonRoot,omitempty"`
	Privileged               *bool `json:"privileged,omitempty"`
	AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation,omitempty"`
	ReadOnlyRootFilesystem   *bool `json:"readOnlyRootFilesystem,omitempty"`
	Capabilities             struct {
		Add  []string `json:"add,omitempty"`
		Drop []string `json:"drop,omitempty"`
	} `json:"capabilities"`
	SeccompProfile struct {
		Type string `json:"type,omitempty"`
	} `json:"seccompProfile"`
}

type probe struct {
	Exec struct {
		Command []string `json:"command"`
	} `json:"exec"`
	PeriodSeconds    int `json:"periodSeconds"`
	TimeoutSeconds   int `json:"timeoutSeconds"`
	FailureThreshold int `json:"failureThreshold"`
}

type volumeMount struct {
	Name              string `json:"name"`
	MountPath         string `json:"mountPath"`
	SubPath           string `json:"subPath,omitempty"`
	ReadOnly          bool   `json:"readOnly,omitempty"`
	RecursiveReadOnly string `json:"recursiveReadOnly,omitempty"`
	MountPropagation  string `json:"mountPropagation,omitempty"`
}

type volume struct {
	Name     string `json:"name"`
	HostPath *struct {
		Path string `json:"path"`
		Type string `json:"type"`
	} `json:"hostPath,omitempty"`
	EmptyDir *struct {
		Medium    string `json:"medium"`
		SizeLimit string `json:"sizeLimit"`
	} `json:"emptyDir,omitempty"`
	ConfigMap *configMap `json:"configMap,omitempty"`
}

type configMap struct {
	Name     string `json:"name"`
	Optional *bool  `json:"optional,omitempty"`
}

type networkPolicy struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   metadata `json:"metadata"`
	Spec       struct {
		PodSelector selector  `json:"podSelector"`
		PolicyTypes []string  `json:"policyTypes"`
		Ingress     []ingress `json:"ingress,omitempty"`
		Egress      []any     `json:"egress,omitempty"`
	} `json:"spec"`
}

type ingress struct {
	From  []any         `json:"from,omitempty"`
	Ports []networkPort `json:"ports,omitempty"`
}

type networkPort struct {
	Protocol string `json:"protocol"`
	Port     int    `json:"port"`
}

type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace,omitempty"`
	Resources  []string `json:"resources"`
	Labels     []struct {
		IncludeSelectors bool              `json:"includeSelectors"`
		IncludeTemplates bool              `json:"includeTemplates"`
		Pairs            map[string]string `json:"pairs"`
	} `json:"labels"`
	Images []struct {
		Name    string `json:"name"`
		NewName string `json:"newName,omitempty"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
}

// deployment is everything in one directory below deploy.
type deployment struct {
	DaemonSet     daemonSet
	NetworkPolicy *networkPolicy // nil where there is none
	Kustomization kustomization
	API           apiObjects
}

func (d *deployment) pod() *pod             { return &d.DaemonSet.Spec.Template.Spec }
func (d *deployment) container() *container { return &d.pod().Containers[0] }

// clone copies a deployment, so that a test can break the copy.
func (d *deployment) clone(t *testing.T) *deployment {
	t.Helper()
	content, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var c deployment
	if err := json.Unmarshal(content, &c); err != nil {
		t.Fatal(err)
	}
	return &c
}

// is says whether an optional field is set to a value: absent is neither true nor false.
func is[T comparable](field *T, want T) bool { return field != nil && *field == want }

// show renders an optional field for a message.
func show[T any](field *T) string {
	if field == nil {
		return "absent"
	}
	return fmt.Sprint(*field)
}
