package cli

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"kata-device-plugin/internal/live"
	"kata-device-plugin/internal/manifest"
)

// clusterFlags say which cluster is meant, as kubectl's do.
type clusterFlags struct {
	which live.Cluster
	all   bool
	// distant: what only refers to devices is read as well.
	distant bool
}

func (f *clusterFlags) register(flags *pflag.FlagSet) {
	f.which.Register(flags)
	flags.BoolVarP(&f.all, "all-namespaces", "A", false, "with --live: look at all namespaces")
}

func unknownCluster(err error) error {
	return unusable(err, "name the cluster with --kubeconfig and --context")
}

// read lists what the cluster has. What cannot be listed is told to a person, and the set is then
// not complete in it.
func (f *clusterFlags) read(ctx context.Context, env Env) (texts []manifest.Source, complete []string, err error) {
	config, namespace, err := f.which.Config()
	if err != nil {
		return nil, nil, unknownCluster(err)
	}
	if f.all {
		namespace = ""
	}
	defer env.begin("reading the cluster at " + config.Host)()
	read := live.Read
	if f.distant {
		read = live.ReadAll
	}
	lists, err := read(ctx, config, namespace)
	if err != nil {
		return nil, nil, unusable(err, "check that the cluster can be reached: kubectl version")
	}
	for _, l := range lists {
		if l.Err != nil {
			fmt.Fprintf(env.Stderr, "not read: %v\n", l.Err)
			continue
		}
		texts = append(texts, manifest.Source{Name: "live:" + l.Resource, Data: l.JSON, Unplaced: true})
		if l.Whole {
			complete = append(complete, l.Kind)
		}
	}
	return texts, complete, nil
}
