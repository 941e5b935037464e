//go:build !kubernetes134

// Package live_test reads a real cluster as kubectl-device does.
package live_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"kata-device-plugin/internal/live"
	"kata-device-plugin/internal/manifest"

	"kata-device-plugin/test/plane"
)

func TestMain(m *testing.M) {
	plane.Quiet()
	os.Exit(m.Run())
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// find is the list of a resource.
func find(t *testing.T, all []live.List, resource string) live.List {
	t.Helper()
	i := slices.IndexFunc(all, func(l live.List) bool { return l.Resource == resource })
	if i < 0 {
		t.Fatalf("there is no list of %s", resource)
	}
	return all[i]
}

// load makes objects of what was read.
func load(t *testing.T, all []live.List) *manifest.Set {
	t.Helper()
	var o manifest.Options
	for _, l := range all {
		if l.Err == nil {
			o.Texts = append(o.Texts, manifest.Source{Name: l.Resource, Data: l.JSON, Unplaced: true})
		}
	}
	set, err := manifest.Load(nil, o)
	must(t, err)
	return set
}

// count counts the objects of a kind in a namespace.
func count(set *manifest.Set, kind, namespace string) (n int) {
	for _, o := range set.Objects {
		if o.Kind == kind && (namespace == "" || o.Namespace == namespace) {
			n++
		}
	}
	return n
}

// TestRead: everything of all namespaces, in more than one page, without Secrets; of one namespace
// when that is asked for; and what somebody may not list has its error, and hides nothing else.
func TestRead(t *testing.T) {
	p := plane.Start(t, plane.Options{})
	ctx := t.Context()
	core := p.Client().CoreV1()
	const many = 1203
	for range many {
		_, err := core.ConfigMaps("default").Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "many-"}}, metav1.CreateOptions{})
		must(t, err)
	}
	_, err := core.Secrets("default").Create(ctx, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "hidden"}, StringData: map[string]string{"key": "not-to-be-seen"}}, metav1.CreateOptions{})
	must(t, err)
	_, err = core.ConfigMaps("kube-system").Create(ctx, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}, metav1.CreateOptions{})
	must(t, err)

	all, err := live.Read(ctx, p.Config(), "")
	must(t, err)
	for _, l := range all {
		if l.Err != nil || !l.Whole || strings.Contains(string(l.JSON), "not-to-be-seen") || strings.Contains(string(l.JSON), "managedFields") {
			t.Errorf("%s: %v, whole %v", l.Resource, l.Err, l.Whole)
		}
	}
	if n := count(load(t, all), "ConfigMap", "default"); n < many {
		t.Errorf("there are %d ConfigMaps, want %d at least", n, many)
	}

	one, err := live.Read(ctx, p.Config(), "kube-system")
	must(t, err)
	set := load(t, one)
	if count(set, "ConfigMap", "default") > 0 || count(set, "ConfigMap", "kube-system") == 0 {
		t.Error("these are not the ConfigMaps of one namespace")
	}
	if find(t, one, "configmaps").Whole || !find(t, one, "nodes").Whole {
		t.Error("what has a namespace is not whole then, and what has none is")
	}
	denied(t, p)
}

// denied: an account that may list pods only.
func denied(t *testing.T, p *plane.Plane) {
	t.Helper()
	ctx := t.Context()
	_, err := p.Client().RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "pods-only"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = p.Client().RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "pods-only"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "pods-only"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "somebody"}},
	}, metav1.CreateOptions{})
	must(t, err)
	config := rest.CopyConfig(p.Config())
	config.Impersonate.UserName = "somebody"
	plane.Await(t, "the right to list pods", func(ctx context.Context) error {
		all, err := live.Read(ctx, config, "")
		if err != nil {
			return err
		}
		return find(t, all, "pods").Err
	})
	all, err := live.Read(ctx, config, "")
	must(t, err)
	for _, l := range all {
		if (l.Resource == "pods") != (l.Err == nil) || l.Err != nil && !l.Forbidden() {
			t.Errorf("%s: %v", l.Resource, l.Err)
		}
	}
}

// TestAway: a cluster that cannot be reached is an error that names it, and takes as long as it may.
func TestAway(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if all, err := live.Read(ctx, &rest.Config{Host: "https://127.0.0.1:1"}, ""); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%v %v", all, err)
	}
}
