//go:build !kubernetes134

package plane

import (
	"os"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The extras of a token that is bound to a pod, by which a policy can tell the node.
const (
	NodeNameExtra = "authentication.kubernetes.io/node-name"
	NodeUIDExtra  = "authentication.kubernetes.io/node-uid"
)

// ConfigFor is the configuration of a client that acts as some user. It impersonates, so
// that any user, group and extra can be had; RBAC, the Node authorizer and admission see
// that user and nobody else.
func (p *Plane) ConfigFor(user string, groups []string, extra map[string][]string) *rest.Config {
	c := p.Config()
	c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups, Extra: extra}
	return c
}

// as is the administrator under another name, to tell apart who has written what.
func (p *Plane) as(agent string) *rest.Config {
	c := p.Config()
	c.UserAgent = agent
	return c
}

// Agent is the identity of a DaemonSet's pod on a node: a service account, made if there is
// none, a pod of it that is bound to the node, and a token that is bound to that pod. The
// server puts the node's name into such a token (TokenRequest), so the extras are real.
func (p *Plane) Agent(t testing.TB, namespace, account, node string) *rest.Config {
	t.Helper()
	accounts := p.client.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(t.Context(), &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("create service account %s: %v", account, err)
	}
	pod, err := p.client.CoreV1().Pods(namespace).Create(t.Context(), &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: account + "-"},
		Spec: v1.PodSpec{
			ServiceAccountName: account, NodeName: node,
			Containers: []v1.Container{{Name: "agent", Image: image}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a pod of %s on %s: %v", account, node, err)
	}
	token, err := accounts.CreateToken(t.Context(), account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("request a token for pod %s: %v", pod.Name, err)
	}
	return &rest.Config{
		Host:            p.admin.Host,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.admin.CAData},
		BearerToken:     token.Status.Token,
	}
}

// Kubeconfig writes a configuration of this package to a file, for another process, and
// returns the file's path.
func (p *Plane) Kubeconfig(t testing.TB, c *rest.Config) string {
	t.Helper()
	const name = "plane"
	file, err := os.CreateTemp(p.dir, "kubeconfig")
	if err != nil {
		t.Fatalf("make a kubeconfig: %v", err)
	}
	_ = file.Close()
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: c.Host, CertificateAuthorityData: c.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {
			ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken,
			Impersonate: c.Impersonate.UserName, ImpersonateUID: c.Impersonate.UID,
			ImpersonateGroups: c.Impersonate.Groups, ImpersonateUserExtra: c.Impersonate.Extra,
		}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, file.Name())
	if err != nil {
		t.Fatalf("write a kubeconfig: %v", err)
	}
	return file.Name()
}
