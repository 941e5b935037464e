package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kata-device-plugin/internal/cli"
)

// kubeconfig writes the file by which a cluster is found, and returns its path.
func kubeconfig(t *testing.T, server, namespace string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	must(t, os.WriteFile(file, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c,
		contexts: [{name: c, context: {cluster: c, user: u, namespace: %q}}],
		clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {}}]}`, namespace, server), 0o600))
	return file
}

// apiServer answers what it has an answer for, and nothing else.
func apiServer(t *testing.T, answers map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		switch {
		case r.Method != http.MethodGet:
			t.Errorf("%s %s is no question", r.Method, r.URL)
		case !ok:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, text)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// run runs a command line, and returns what it prints.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, wrong bytes.Buffer
	code = cli.Main(t.Context(), cli.Env{
		Name: "kubectl-device", Version: "v0", Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &wrong,
		Getenv: os.Getenv, Host: t.TempDir(),
	})
	return code, out.String(), wrong.String()
}

// TestCurrentNamespace: a pod without a namespace is one of the namespace that the kubeconfig says, as
// it is for kubectl.
func TestCurrentNamespace(t *testing.T) {
	server := apiServer(t, map[string]string{
		"/api":    `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis":   `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "pods", "namespaced": true, "kind": "Pod", "verbs": ["list"]}]}`,
		"/api/v1/namespaces/team/pods": `{"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [
			{"metadata": {"name": "train", "namespace": "team"}, "spec": {"containers": [{"name": "c"}]}}]}`,
		"/api/v1/namespaces/other/pods": `{"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []}`,
	})
	for namespace, want := range map[string]int{"team": 0, "other": 2, "": 2} {
		code, out, wrong := run(t, "explain", "pod", "train", "--live", "--kubeconfig", kubeconfig(t, server, namespace))
		if code != want || code == 0 && !strings.Contains(out, "team/train") {
			t.Errorf("in namespace %q it exits with %d and says\n%s%s", namespace, code, out, wrong)
		}
	}
	code, out, wrong := run(t, "explain", "pod", "train", "--live", "-n", "team", "--kubeconfig", kubeconfig(t, server, "other"))
	if code != 0 {
		t.Errorf("with -n team it exits with %d and says\n%s%s", code, out, wrong)
	}
}

// policies are the answers of a cluster with a policy of each kind, of which one may not be read.
func policies() map[string]string {
	const group = `{"kind": "APIGroup", "apiVersion": "v1", "name": "%[1]s", "versions": [{"groupVersion": "%[1]s/v1", "version": "v1"}],
		"preferredVersion": {"groupVersion": "%[1]s/v1", "version": "v1"}}`
	const resource = `{"kind": "APIResourceList", "groupVersion": "%s/v1", "resources": [{"name": "%s", "kind": "%s", "verbs": [%q]}]}`
	answers, groups := map[string]string{}, []string{}
	for _, r := range []struct{ group, name, kind, verb string }{
		{"nvidia.com", "clusterpolicies", "ClusterPolicy", "list"},
		{"kyverno.io", "clusterpolicies", "ClusterPolicy", "list"},
		{"constraints.gatekeeper.sh", "fewergpus", "FewerGPUs", "list"},
		{"policies.kyverno.io", "validatingpolicies", "ValidatingPolicy", "list"},
	} {
		groups = append(groups, fmt.Sprintf(group, r.group))
		answers["/apis/"+r.group+"/v1"] = fmt.Sprintf(resource, r.group, r.name, r.kind, r.verb)
		if r.group != "kyverno.io" {
			answers["/apis/"+r.group+"/v1/"+r.name] = fmt.Sprintf(`{"kind": "List", "apiVersion": "%s/v1", "metadata": {},
				"items": [{"metadata": {"name": "few", "uid": "u"}, "spec": {"resource": "nvidia.com/gpu"}}]}`, r.group)
		}
	}
	answers["/api"] = `{"kind": "APIVersions", "versions": []}`
	answers["/apis"] = `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [` + strings.Join(groups, ", ") + `]}`
	answers["/version"] = `{"major": "1", "minor": "36", "gitVersion": "v1.36.0"}`
	return answers
}

// TestPolicies: policies are read whatever their resources are called, and what could not be is said.
func TestPolicies(t *testing.T) {
	config := kubeconfig(t, apiServer(t, policies()), "")
	_, out, wrong := run(t, "preflight", "--live", "-A", "--kubeconfig", config, "-o", "json", "--migrate", "nvidia.com/gpu")
	for _, want := range []string{"fewergpus few names", "validatingpolicy few names"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if !strings.HasPrefix(wrong, "not read: list clusterpolicies.kyverno.io: ") {
		t.Errorf("policies of Kyverno could not be read, and it says\n%s", wrong)
	}
}
