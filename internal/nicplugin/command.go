package nicplugin

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"kata-device-plugin/internal/agent"
	"kata-device-plugin/internal/devinfo"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/journal"
)

// Command runs nic-device-plugin with arguments until ctx ends, and returns its exit code. It
// logs to stderr, in JSON.
func Command(ctx context.Context, name, version string, roots host.Roots, args []string, stdout, stderr io.Writer) int {
	program := func(o Options, log *slog.Logger) agent.Program { return New(name, version, roots, o, log) }
	return Run(ctx, name, version, program, args, stdout, stderr)
}

// Run is Command for whoever makes the program of what the arguments say.
func Run(ctx context.Context, name, version string, program func(Options, *slog.Logger) agent.Program, args []string, stdout, stderr io.Writer) int {
	o, old, err := parse(name, args, stderr)
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
	for _, f := range old {
		log.Info("a flag of an earlier plugin has no effect", "flag", f)
	}
	if err := program(o, log).Run(ctx, log); err != nil {
		log.Error("stopped", "reason", err.Error())
		return exit.Error
	}
	return exit.OK
}

// errVersion says that only the version was asked for.
var errVersion = errors.New("version")

// parse reads the command line, and names the flags in it that have no effect.
func parse(name string, args []string, stderr io.Writer) (o Options, old []string, err error) {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is told by the caller, in one line
	file := flags.String("config-file", "", "configuration `file`; the default are all that exist of\n"+strings.Join(DefaultConfig(), "\n"))
	flags.StringVar(&o.Prefix, "resource-prefix", "", "`prefix` of the resources of pools that name none (default intel.com for resourceList, rdma for configList)")
	flags.StringVar(&o.Dev, "dev-dir", "/dev", "`directory` in which the host's /dev is seen")
	flags.StringVar(&o.DeviceInfo, "device-info-dir", devinfo.Directory, "`directory` of device-info files")
	version := flags.Bool("version", false, "print the version and exit")
	ignored := ignoredFlags()
	for _, f := range ignored {
		flags.Var(&ignoredFlag{}, f, "no effect; a flag of the plugins that this one replaces")
	}
	err = flags.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(stderr)
		flags.Usage()
		return o, nil, err
	case err != nil:
		return o, nil, fmt.Errorf("%w; see %s --help", err, name)
	case *version:
		return o, nil, errVersion
	case flags.NArg() > 0:
		return o, nil, fmt.Errorf("unexpected argument %q: everything is a flag; see %s --help", flags.Arg(0), name)
	}
	o.Config = DefaultConfig()
	if *file != "" {
		path, err := filepath.Abs(*file)
		if err != nil {
			return o, nil, fmt.Errorf("--config-file %s: %w", *file, err)
		}
		// The directory is watched, and all that the process keeps access to when it confines
		// itself.
		if dir := filepath.Dir(path); dir == "/" || dir == "/dev" {
			return o, nil, fmt.Errorf("--config-file %s: put it into a directory of its own, since all of its directory stays readable", path)
		}
		o.Config = []string{path}
	}
	flags.Visit(func(f *flag.Flag) {
		if slices.Contains(ignored, f.Name) {
			old = append(old, f.Name)
		}
	})
	return o, old, nil
}

// ignoredFlags are those of the plugins that this one replaces which have no meaning here, so
// that their DaemonSets' arguments can stay.
func ignoredFlags() []string {
	return []string{
		"use-cdi", "log-dir", "log-level", "kubelet-root-dir",
		"alsologtostderr", "log_backtrace_at", "log_dir", "log_link", "logbuflevel", "logtostderr", "stderrthreshold", "v", "vmodule",
	}
}

// ignoredFlag takes any value, and none.
type ignoredFlag struct{}

func (*ignoredFlag) String() string   { return "" }
func (*ignoredFlag) Set(string) error { return nil }

// IsBoolFlag lets the flag stand without a value. Its value then has to follow behind an
// equals sign, as it does in the manifests of those plugins.
func (*ignoredFlag) IsBoolFlag() bool { return true }
