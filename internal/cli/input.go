package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/live"
	"kata-device-plugin/internal/manifest"
)

// inputFlags say what a command looks at besides its arguments. They mean the same wherever they are.
type inputFlags struct {
	cluster  clusterFlags
	live     bool
	complete []string
}

// register adds the flags. kinds are an example of kinds that the command is about.
func (f *inputFlags) register(flags *pflag.FlagSet, kinds string) {
	flags.BoolVar(&f.live, "live", false, "look at the cluster; it is only asked for lists")
	flags.StringSliceVar(&f.complete, "complete", nil, "`kinds` of which the inputs have all objects, for example "+kinds)
	f.cluster.register(flags)
}

// check refuses flags that would do nothing, and kinds that no command is about.
func (f *inputFlags) check() error {
	if idle := f.cluster.idle(); idle != "" && !f.live {
		return unusable(fmt.Errorf("%s is about a cluster", idle), "add --live")
	}
	for _, kind := range f.complete {
		if !knownKind(kind) {
			return unusable(fmt.Errorf("--complete %s: no command is about such a kind", kind),
				"use some of "+strings.Join(kinds(), ","))
		}
	}
	return nil
}

// namespace is that of what names none.
func (f *inputFlags) namespace() (string, error) {
	if !f.live {
		return cmp.Or(f.cluster.which.Namespace(), "default"), nil
	}
	_, namespace, err := f.cluster.which.Config()
	if err != nil {
		return "", unknownCluster(err)
	}
	return namespace, nil
}

// objects reads files and, where that is asked for, the cluster. An input without any object is no
// input, unless captured nodes are there: a path that is wrong must not look like a cluster that is in order.
func (f *inputFlags) objects(ctx context.Context, env Env, in *inputs) (*manifest.Set, error) {
	o := manifest.Options{Stdin: in.stdin, Pipes: in.pipes, Complete: f.complete}
	if f.live {
		texts, whole, err := f.cluster.read(ctx, env)
		if err != nil {
			return nil, err
		}
		o.Texts, o.Complete = texts, slices.Concat(o.Complete, whole)
	}
	set, err := manifest.Load(in.paths, o)
	if err != nil {
		return nil, unusable(err, "")
	}
	templates := slices.ContainsFunc(set.Inputs, func(i manifest.Input) bool { return i.Template != nil })
	if len(in.paths) > in.nodes && len(set.Objects) == 0 && !templates { // those are a finding
		return nil, &failure{
			code: exit.Incomplete, err: errors.New("there is no Kubernetes object in the input"),
			hint: "name manifests, or what kubectl get -o yaml prints",
		}
	}
	return set, nil
}

// checkNamespace refuses a namespace that nobody would be in: who names one with a dump expects that the rest of it
// is left out.
func (f *inputFlags) checkNamespace(set *manifest.Set) error {
	namespace := f.cluster.which.Namespace()
	if f.live || namespace == "" || slices.ContainsFunc(set.Objects, check.TakesNamespace) {
		return nil
	}
	return unusable(fmt.Errorf("--namespace %s is that of objects that name none, and the input has no such object", namespace),
		"leave it out: the input is looked at as a whole. With --live it is the namespace that is read")
}

// kinds are what --complete may name.
func kinds() []string {
	var all []string
	for _, r := range live.Resources() {
		all = append(all, r.Resource)
	}
	slices.Sort(all)
	return slices.Compact(all) // two groups may have a resource of one name
}

// knownKind says whether a word stands for a kind, in whichever number and case people write it.
func knownKind(word string) bool {
	return slices.ContainsFunc(kinds(), func(kind string) bool { return manifest.Folded(kind) == manifest.Folded(word) })
}
