package live

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster says which cluster is meant, in kubectl's way: by its flags, $KUBECONFIG and the current
// context.
type Cluster struct {
	file      string
	overrides clientcmd.ConfigOverrides
}

// Register adds the flags.
func (c *Cluster) Register(flags *pflag.FlagSet) {
	flags.StringVar(&c.file, "kubeconfig", "", "`file` that says where the cluster is")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace.ShortName = "n"
	names.ContextOverrideFlags.Namespace.Description = "with --live: the `namespace` to look at; without: that of objects which name none, as with kubectl apply"
	clientcmd.BindOverrideFlags(&c.overrides, flags, names)
}

// Namespace is that of the flag, "" when it was not given.
func (c *Cluster) Namespace() string { return c.overrides.Context.Namespace }

// Config says how the cluster is reached, and which namespace is the current one.
func (c *Cluster) Config() (config *rest.Config, namespace string, err error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.file
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.overrides)
	if config, err = loader.ClientConfig(); err != nil {
		return nil, "", fmt.Errorf("find the cluster: %w", err)
	}
	// The library's five questions a second are for programs that ask all day.
	config.QPS, config.Burst = 50, 100
	if namespace, _, err = loader.Namespace(); err != nil {
		return nil, "", fmt.Errorf("find the current namespace: %w", err)
	}
	return config, namespace, nil
}
