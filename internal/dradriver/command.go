package dradriver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kata-device-plugin/internal/dra"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/journal"
	"kata-device-plugin/internal/unixsock"
	"kata-device-plugin/internal/web"
)

// Options are what the command line and the environment say.
type Options struct {
	// Node is the name of the node's object, and Pod the UID of the driver's pod: with it two
	// instances may overlap in a rolling update.
	Node, Pod string
	// Kubeconfig is "" in a pod.
	Kubeconfig string
	// Kubelet is kubelet's root directory.
	Kubelet string
	// Excluded are the types of devices that are not offered.
	Excluded []dra.Type
	// Listen is the address of metrics, "" for none, and Web the web configuration file.
	Listen, Web string
	// Poll is how often kubelet and the API server are asked what sends no event.
	Poll time.Duration
	// Metadata makes device metadata files for KubeVirt.
	Metadata bool
}

// Command runs the driver with arguments until ctx ends, and returns its exit code. It logs to
// stderr, in JSON.
func Command(ctx context.Context, name, version string, roots host.Roots, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	o, err := parse(name, args, getenv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exit.OK
	case errors.Is(err, errVersion):
		fmt.Fprintln(stdout, name, version)
		return exit.OK
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return exit.Usage
	}
	log := journal.Logger(stderr)
	if err := New(name, version, roots, o, log).Run(ctx); err != nil {
		log.Error("stopped", "reason", err.Error())
		return exit.Error
	}
	return exit.OK
}

// shortestPoll keeps a slip of the pen from becoming a load.
const shortestPoll = 100 * time.Millisecond

// errVersion says that only the version was asked for.
var errVersion = errors.New("version")

// parse reads the command line.
func parse(name string, args []string, getenv func(string) string, stderr io.Writer) (Options, error) {
	var o Options
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is told by the caller, in one line
	flags.StringVar(&o.Node, "node-name", getenv("NODE_NAME"), "`name` of the node's object (default $NODE_NAME)")
	flags.StringVar(&o.Pod, "pod-uid", getenv("POD_UID"), "`UID` of the driver's pod, for rolling updates without a gap (default $POD_UID)")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "`file` that says how to reach the API server; in a pod its service account does")
	flags.StringVar(&o.Kubelet, "kubelet-dir", "/var/lib/kubelet", "kubelet's root `directory`")
	types := flags.String("types", joined(dra.Types()), "`list` of the types of devices to offer")
	flags.StringVar(&o.Listen, "web.listen-address", ":9817", "`address` on which Prometheus is answered, empty for none")
	flags.StringVar(&o.Web, "web.config.file", "", "web configuration `file` of Prometheus's exporters, for TLS and passwords")
	flags.BoolVar(&o.Metadata, "device-metadata", false, "give containers metadata files of their devices, as KubeVirt wants it and Kata must not have it")
	flags.DurationVar(&o.Poll, "poll-interval", 30*time.Second, "how often kubelet and the API server are asked who has which device, which sends no event")
	version := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprintf(stderr, "%s offers VFIO-bound devices to claims of Dynamic Resource Allocation.\n\n", name)
			flags.SetOutput(stderr)
			flags.PrintDefaults()
		}
		return o, err
	}
	if *version {
		return o, errVersion
	}
	return o, o.check(flags.Args(), *types)
}

// check says what is wrong with the options, and takes the types apart.
func (o *Options) check(rest []string, types string) error {
	if len(rest) > 0 {
		return fmt.Errorf("unexpected argument %q: there are only flags, see --help", rest[0])
	}
	if o.Node == "" {
		return errors.New("--node-name is empty, and so is $NODE_NAME: set it to spec.nodeName of the pod (valueFrom.fieldRef)")
	}
	if o.Poll < shortestPoll {
		return fmt.Errorf("--poll-interval %s: want %s or more, such as 30s: each node asks the API server so often", o.Poll, shortestPoll)
	}
	if !filepath.IsAbs(o.Kubelet) {
		return fmt.Errorf("--kubelet-dir %q: want an absolute path, the one that kubelet has too", o.Kubelet)
	}
	// The name of the second socket, which kubelet is told, nobody shortens.
	d := Driver{options: *o}
	for _, path := range socketsOf(d.registry(), d.data(), o.Pod) {
		if long := len(path) - unixsock.MaxPath; long > 0 {
			return fmt.Errorf("--kubelet-dir %s: it is too long by %d bytes for the socket %s", o.Kubelet, long, path)
		}
	}
	wanted := strings.Split(types, ",")
	for _, t := range wanted {
		if !slices.Contains(dra.Types(), dra.Type(t)) {
			return fmt.Errorf("--types %s: %q is no type of devices, want some of %s", types, t, joined(dra.Types()))
		}
	}
	for _, t := range dra.Types() {
		if !slices.Contains(wanted, string(t)) {
			o.Excluded = append(o.Excluded, t)
		}
	}
	return web.Check(o.Web)
}

func joined(types []dra.Type) string {
	all := make([]string, len(types))
	for i, t := range types {
		all[i] = string(t)
	}
	return strings.Join(all, ",")
}
