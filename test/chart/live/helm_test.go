//go:build node

package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"helm.sh/helm/v4/pkg/action"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"kata-device-plugin/test/chart"
	"kata-device-plugin/test/peer/wire"
)

const (
	name      = "passthrough"
	namespace = "kube-system"
	chartDir  = "../../../charts/passthrough"
	patience  = 3 * time.Minute
)

// getter is how Helm finds the API server: by a configuration, where a person has a kubeconfig.
type getter struct{ config *rest.Config }

// ToRESTConfig implements what Helm asks for.
func (g getter) ToRESTConfig() (*rest.Config, error) { return rest.CopyConfig(g.config), nil }

// ToDiscoveryClient implements what Helm asks for.
func (g getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	client, err := discovery.NewDiscoveryClientForConfig(g.config)
	if err != nil {
		return nil, err
	}
	return memory.NewMemCacheClient(client), nil
}

// ToRESTMapper implements what Helm asks for.
func (g getter) ToRESTMapper() (meta.RESTMapper, error) {
	client, err := g.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return restmapper.NewDeferredDiscoveryRESTMapper(client), nil
}

// ToRawKubeConfigLoader implements what Helm asks for.
func (g getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{}
	overrides.Context.Namespace = namespace
	return clientcmd.NewDefaultClientConfig(clientcmdapi.Config{}, overrides)
}

// helm is a person with Helm.
type helm struct{ config *rest.Config }

// with makes what an action needs, and the chart, both anew as for each call of the program.
func (h helm) with(values string) (*action.Configuration, *chartv2.Chart, map[string]any, error) {
	configuration := action.NewConfiguration()
	if err := configuration.Init(getter(h), namespace, "secret"); err != nil {
		return nil, nil, nil, err
	}
	c, err := chart.Load(chartDir)
	if err != nil {
		return nil, nil, nil, err
	}
	v, err := chart.Values(values)
	return configuration, c, v, err
}

// install takes objects over that are there already, if it is told to.
func (h helm) install(ctx context.Context, values string, takeOver bool) error {
	configuration, c, v, err := h.with(values)
	if err != nil {
		return err
	}
	a := action.NewInstall(configuration)
	a.ReleaseName, a.Namespace = name, namespace
	a.TakeOwnership, a.ForceConflicts = takeOver, takeOver
	a.WaitStrategy, a.Timeout, a.PostRenderer = kube.StatusWatcherStrategy, patience, simulated{}
	_, err = a.RunWithContext(ctx, c, v)
	return err
}

func (h helm) upgrade(ctx context.Context, values string) error {
	configuration, c, v, err := h.with(values)
	if err != nil {
		return err
	}
	a := action.NewUpgrade(configuration)
	a.Namespace, a.WaitStrategy, a.Timeout, a.PostRenderer = namespace, kube.StatusWatcherStrategy, patience, simulated{}
	_, err = a.RunWithContext(ctx, name, c, v)
	return err
}

func (h helm) rollback(revision int) error {
	configuration, _, _, err := h.with("")
	if err != nil {
		return err
	}
	a := action.NewRollback(configuration)
	a.Version, a.WaitStrategy, a.Timeout = revision, kube.StatusWatcherStrategy, patience
	return a.Run(name)
}

func (h helm) uninstall() error {
	configuration, _, _, err := h.with("")
	if err != nil {
		return err
	}
	a := action.NewUninstall(configuration)
	a.WaitStrategy, a.Timeout = kube.StatusWatcherStrategy, patience
	_, err = a.Run(name)
	return err
}

// simulated is what a simulated machine needs beside the chart: its own /sys, and the address of the API
// server, since nobody implements services there.
type simulated struct{}

// Run implements Helm's PostRenderer.
func (simulated) Run(manifests *bytes.Buffer) (*bytes.Buffer, error) {
	var out bytes.Buffer
	reader := utilyaml.NewYAMLReader(bufio.NewReader(manifests))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return &out, nil
		}
		var o map[string]any
		if err == nil {
			err = yaml.Unmarshal(document, &o)
		}
		if err == nil && o["kind"] == "DaemonSet" {
			err = furnish(o)
		}
		if err == nil {
			document, err = yaml.Marshal(o)
		}
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(document)
	}
}

// furnish mounts the machine's own /sys into the container of a DaemonSet, and tells a container that has an
// environment where the API server is.
func furnish(o map[string]any) error {
	pod := []string{"spec", "template", "spec"}
	containers, _, err := unstructured.NestedSlice(o, append(pod, "containers")...)
	if err != nil {
		return err
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return fmt.Errorf("a container is a %T", containers[0])
	}
	if env, ok := container["env"].([]any); ok {
		container["env"] = append(env, map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": wire.BridgeAddress},
			map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": "6443"})
	}
	mounts, _, err1 := unstructured.NestedSlice(container, "volumeMounts")
	volumes, _, err2 := unstructured.NestedSlice(o, append(pod, "volumes")...)
	container["volumeMounts"] = append(mounts, map[string]any{"name": "sys", "mountPath": "/sys", "readOnly": true})
	volumes = append(volumes, map[string]any{"name": "sys", "hostPath": map[string]any{"path": "/run/node/sys", "type": "Directory"}})
	return errors.Join(err1, err2,
		unstructured.SetNestedSlice(o, containers, append(pod, "containers")...),
		unstructured.SetNestedSlice(o, volumes, append(pod, "volumes")...))
}
