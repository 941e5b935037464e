package cli

import (
	"cmp"
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
	given   *pflag.FlagSet
}

func (f *clusterFlags) register(flags *pflag.FlagSet) {
	f.given = pflag.NewFlagSet("cluster", pflag.ContinueOnError)
	f.which.Register(f.given)
	f.given.BoolVarP(&f.all, "all-namespaces", "A", false, "with --live: look at all namespaces")
	flags.AddFlagSet(f.given)
}

// idle is a flag that was given and says which cluster is meant, "" for none. Objects in files have namespaces,
// too.
func (f *clusterFlags) idle() string {
	name := ""
	f.given.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && flag.Name != "namespace" {
			name = cmp.Or(name, "--"+flag.Name)
		}
	})
	return name
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
