package exporter

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/journal"
	"kata-device-plugin/internal/web"
)

// Options are what the command line says.
type Options struct {
	// Listen is the address of the port, "" for none, and Web the web configuration file.
	Listen, Web string
	// Textfile is the file that the metrics are written to, "" for none.
	Textfile string
	// Poll is how often kubelet is asked. Stale is how old an answer may be that is still told,
	// and Settle how long something has to be amiss before it is.
	Poll, Stale, Settle time.Duration
	// Node is the node's name, for the page only.
	Node string
	// UIDs adds the pods' UIDs.
	UIDs bool
	// Kubelet is kubelet's root directory.
	Kubelet string
	// NICs are the configuration files of nic-device-plugin, and Prefix that of pools without one.
	NICs   []string
	Prefix string
	// Dev is where the host's /dev is seen.
	Dev string
}

// Node is what the exporter looks at.
type Node struct {
	Roots host.Roots
	// Links are those of the node's network and its routes, nil for those of the network namespace that the
	// process is in.
	Links func() (*host.Links, error)
}

// Command runs the exporter with arguments until ctx ends, and returns its exit code. It logs to
// stderr, in JSON.
func Command(ctx context.Context, name, version string, on Node, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "introspect" {
		if err := introspect(args[1:], stdout); err != nil {
			fmt.Fprintf(stderr, "%s: %v\n", name, err)
			return exit.Usage
		}
		return exit.OK
	}
	o, err := parse(name, args, stderr)
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
	on.Roots = o.under(on.Roots)
	if err := New(version, on, o, log).Run(ctx); err != nil {
		log.Error("stopped", "reason", err.Error())
		return exit.Error
	}
	return exit.OK
}

// under applies the options to the directories.
func (o *Options) under(roots host.Roots) host.Roots {
	roots.Dev = o.Dev
	roots.PodResources = filepath.Join(o.Kubelet, "pod-resources")
	return roots
}

// errVersion says that only the version was asked for.
var errVersion = errors.New("version")

// The limits keep a slip of the pen from becoming a load on kubelet, or a state that is always old.
const (
	shortestPoll = time.Second
	resync       = 30 * time.Second // of the hardware
)

// parse reads the command line.
func parse(name string, args []string, stderr io.Writer) (Options, error) {
	var o Options
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is told by the caller, in one line
	flags.StringVar(&o.Listen, "web.listen-address", ":9818", "`address` on which Prometheus and browsers are answered, empty for none")
	flags.StringVar(&o.Web, "web.config.file", "", "web configuration `file` of Prometheus's exporters, for TLS and passwords")
	flags.StringVar(&o.Textfile, "textfile", "", "write the metrics to `file` for node_exporter's textfile collector, and open no port")
	flags.DurationVar(&o.Poll, "poll-interval", 10*time.Second, "how often kubelet is asked who has which device")
	flags.DurationVar(&o.Stale, "stale-after", 90*time.Second, "how old an answer of a source may be that is still exported")
	flags.DurationVar(&o.Settle, "settle", 2*time.Minute, "how long something has to be amiss before it is exported: kubelet tidies up lazily")
	flags.BoolVar(&o.UIDs, "pod-uid", false, "add the pods' UIDs, which makes new series each time a pod is made anew")
	flags.StringVar(&o.Node, "node-name", "", "`name` of the node, which the page shows; Prometheus knows it by itself")
	flags.StringVar(&o.Kubelet, "kubelet-dir", "/var/lib/kubelet", "kubelet's root `directory`")
	flags.StringVar(&o.Dev, "dev-dir", "/dev", "`directory` in which the host's /dev is seen")
	flags.Func("nic-config-file", "configuration `file` of nic-device-plugin, which may not exist; may be given several times", func(file string) error {
		if !filepath.IsAbs(file) {
			return errors.New("want an absolute path")
		}
		o.NICs = append(o.NICs, file)
		return nil
	})
	flags.StringVar(&o.Prefix, "nic-resource-prefix", "", "the --resource-prefix of nic-device-plugin")
	version := flags.Bool("version", false, "print the version and exit")
	err := flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stderr, "%s tells Prometheus which pod has which device of the node, and how the devices are.\n"+
			"%s introspect metrics [-o table|json] prints what metrics there are.\n\n", name, name)
		flags.SetOutput(stderr)
		flags.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; see %s --help", err, name)
	case *version:
		return o, errVersion
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: everything is a flag, but introspect; see %s --help", flags.Arg(0), name)
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return o, o.check(given)
}

// check says what is wrong with the options.
func (o *Options) check(given map[string]bool) error {
	if o.Textfile != "" {
		if given["web.listen-address"] && o.Listen != "" {
			return errors.New("--textfile and --web.listen-address: want one of the two, since the file is for sites that refuse a port")
		}
		o.Listen = ""
		if !filepath.IsAbs(o.Textfile) || filepath.Ext(o.Textfile) != ".prom" {
			return fmt.Errorf("--textfile %q: want an absolute path that ends with .prom, which is what the collector reads", o.Textfile)
		}
	}
	if o.Listen == "" && o.Textfile == "" {
		return errors.New("--web.listen-address is empty: want an address such as :9818, or --textfile")
	}
	if o.Poll < shortestPoll {
		return fmt.Errorf("--poll-interval %s: want %s or more, such as 10s: others ask kubelet too, and it answers so many only", o.Poll, shortestPoll)
	}
	if least := 2 * max(o.Poll, resync); o.Stale < least {
		return fmt.Errorf("--stale-after %s: want %s or more: sources are read every %s at most", o.Stale, least, max(o.Poll, resync))
	}
	if o.Settle < 0 {
		return fmt.Errorf("--settle %s: want a time, such as 2m", o.Settle)
	}
	for name, dir := range map[string]string{"kubelet-dir": o.Kubelet, "dev-dir": o.Dev} {
		if !filepath.IsAbs(dir) {
			return fmt.Errorf("--%s %q: want an absolute path", name, dir)
		}
	}
	return web.Check(o.Web)
}
