package peer

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kata-device-plugin/test/peer/wire"
	"kata-device-plugin/test/pki"
)

// Files in the configuration of a control plane and of a node that has joined one.
const (
	caFile         = "ca.crt"
	kubeconfigFile = "kubeconfig"
)

const (
	apiURL     = "https://" + wire.BridgeAddress + ":6443"
	etcdURL    = "http://127.0.0.1:2379"
	serviceIPs = "10.96.0.0/16"

	schedulerAddress = "127.0.0.1:10259"
)

// ControlPlane is etcd, API server, scheduler and controller manager as they ship, with
// the authorizers Node and RBAC and the admission plugin NodeRestriction beside the usual
// ones. Nodes join by Options.Join.
type ControlPlane struct {
	*box

	etcd, api, controllers, scheduler service

	ca      *pki.Authority
	config  *rest.Config
	client  kubernetes.Interface
	nodes   map[string]int // name to place on the bridge
	stopped bool
}

// StartControlPlane starts a control plane without nodes. It ends with the test.
func StartControlPlane(t testing.TB, p *Programs) *ControlPlane {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c := &ControlPlane{box: &box{t: t}, nodes: map[string]int{}}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	steps := newSteps()
	if err := c.bring(ctx, p, steps.done); err != nil {
		t.Fatalf("start a control plane: %v", err)
	}
	t.Logf("a control plane was started: %s", steps)
	return c
}

// Stop ends the control plane and removes everything it was made of. To stop it again
// does nothing.
func (c *ControlPlane) Stop() error {
	if c.stopped {
		return nil
	}
	c.stopped = true
	err := c.leave()
	if e := c.remove(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("stop the control plane: %w", err)
	}
	return nil
}

func (c *ControlPlane) bring(ctx context.Context, p *Programs, done func(step string)) (err error) {
	if c.box, err = newBox(c.t, "control-plane"); err != nil {
		return err
	}
	if err := c.identities(); err != nil {
		return err
	}
	if err := c.enter(ctx, p, wire.Spec{Network: wire.Bridge}); err != nil {
		return err
	}
	done("namespaces")
	for _, m := range c.members() {
		*m.service = service{box: c.box, name: m.name}
		err := m.service.run(ctx, wire.Start{Path: filepath.Join(wire.ProgramDir, m.name), Args: m.args})
		if err != nil {
			return err
		}
		err = Await(ctx, m.name, func(ctx context.Context) error {
			if err := m.service.died(); err != nil {
				return err
			}
			return m.ready(ctx)
		})
		if err != nil {
			return err
		}
		done(m.name)
	}
	return nil
}

// identities makes the cluster's certificates, and the admin's client.
func (c *ControlPlane) identities() (err error) {
	if c.ca, err = pki.New("peer"); err != nil {
		return err
	}
	server, err := c.ca.Issue("kube-apiserver", nil, wire.BridgeAddress, "127.0.0.1", "10.96.0.1", "kubernetes.default.svc")
	if err != nil {
		return err
	}
	toKubelet, err := c.ca.Issue("kube-apiserver-kubelet-client", []string{"system:masters"})
	if err != nil {
		return err
	}
	tokens, err := c.ca.Key()
	if err != nil {
		return err
	}
	files := map[string]string{
		caFile:        string(c.ca.PEM),
		"api.crt":     string(server.Cert),
		"api.key":     string(server.Key),
		"kubelet.crt": string(toKubelet.Cert),
		"kubelet.key": string(toKubelet.Key),
		"tokens.key":  string(tokens),
	}
	for _, user := range []string{controllers, scheduler} {
		if files[user], err = c.kubeconfig("system:" + user); err != nil {
			return err
		}
	}
	if err := c.configure(files); err != nil {
		return err
	}
	if c.config, err = c.ConfigFor("admin", "system:masters"); err != nil {
		return err
	}
	c.client, err = kubernetes.NewForConfig(c.config)
	return err
}

// Config is the way to the API server, as a member of the group system:masters.
func (c *ControlPlane) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Client is the admin's client.
func (c *ControlPlane) Client() kubernetes.Interface { return c.client }

// ConfigFor is the way to the API server as some user in some groups.
func (c *ControlPlane) ConfigFor(user string, groups ...string) (*rest.Config, error) {
	id, err := c.ca.Issue(user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: apiURL, Dial: c.dial, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.PEM, CertData: id.Cert, KeyData: id.Key},
	}, nil
}

// kubeconfig is the file by which a program finds the API server and is known to it.
func (c *ControlPlane) kubeconfig(user string, groups ...string) (string, error) {
	id, err := c.ca.Issue(user, groups)
	if err != nil {
		return "", err
	}
	text, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"peer": {Server: apiURL, CertificateAuthorityData: c.ca.PEM}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{user: {ClientCertificateData: id.Cert, ClientKeyData: id.Key}},
		Contexts:       map[string]*clientcmdapi.Context{"peer": {Cluster: "peer", AuthInfo: user}},
		CurrentContext: "peer",
	})
	if err != nil {
		return "", fmt.Errorf("write a kubeconfig for %s: %w", user, err)
	}
	return string(text), nil
}

// admit adds to a node's configuration what it takes to join.
func (c *ControlPlane) admit(name string, files map[string]string) (err error) {
	if _, there := c.nodes[name]; there {
		return fmt.Errorf("there is a node %s already", name)
	}
	c.nodes[name] = len(c.nodes) + 1
	files[caFile] = string(c.ca.PEM)
	files[kubeconfigFile], err = c.kubeconfig("system:node:"+name, "system:nodes")
	return err
}

// connect puts a cable between a node and the control plane's bridge. It goes when one of
// the two does.
func (c *ControlPlane) connect(ctx context.Context, n *Node) error {
	place := c.nodes[n.name]
	port := "port" + strconv.Itoa(place)
	ip := n.options.Programs.paths["ip"]
	// The cable of a boot before: the kernel lets go of a network namespace some time after its
	// last process has gone. That there is none is no error.
	_, _ = c.box.Run(ctx, ip, "link", "del", port)
	out, err := exec.CommandContext(ctx, ip, "link", "add", wire.NodeInterface, "netns", n.pid(),
		"type", "veth", "peer", "name", port, "netns", c.pid()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("connect %s: %w: %s", n.name, err, out)
	}
	address := "192.0.2." + strconv.Itoa(10+place)
	for _, line := range []struct {
		in   *box
		args []string
	}{
		{c.box, []string{"link", "set", port, "master", wire.BridgeName, "up"}},
		// With an address of its own, since a bridge would change that as pods come and go.
		{n.box, []string{"link", "add", wire.BridgeName, "address", fmt.Sprintf("02:00:00:00:00:%02x", place), "type", "bridge"}},
		{n.box, []string{"link", "set", wire.BridgeName, "up"}},
		{n.box, []string{"link", "set", wire.NodeInterface, "master", wire.BridgeName, "up"}},
		{n.box, []string{"addr", "add", address + "/24", "dev", wire.BridgeName}},
		{n.box, []string{"route", "add", "default", "via", wire.BridgeAddress, "dev", wire.BridgeName}},
	} {
		if _, err := line.in.Run(ctx, ip, line.args...); err != nil {
			return fmt.Errorf("connect %s: %w", n.name, err)
		}
	}
	return nil
}

// member is one of the programs of a control plane.
type member struct {
	service *service
	name    string
	args    []string
	ready   func(context.Context) error
}

// members are the programs in the order in which they need each other.
func (c *ControlPlane) members() []member {
	return []member{
		{&c.etcd, etcdName, etcdArgs(), func(ctx context.Context) error {
			_, err := c.get(ctx, etcdURL+"/health")
			return err
		}},
		{&c.api, apiServer, apiServerArgs(), func(ctx context.Context) error {
			return c.client.CoreV1().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
		}},
		{&c.controllers, controllers, controllerArgs(), func(ctx context.Context) error {
			_, err := c.client.CoreV1().ServiceAccounts(Namespace).Get(ctx, "default", metav1.GetOptions{})
			return err
		}},
		{&c.scheduler, scheduler, schedulerArgs(), func(ctx context.Context) error {
			conn, err := c.dial(ctx, "tcp", schedulerAddress)
			if err == nil {
				err = conn.Close()
			}
			return err
		}},
	}
}
