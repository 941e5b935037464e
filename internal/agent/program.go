package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"kata-device-plugin/internal/confine"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/host"
)

// Program is what makes one program of the agent.
type Program struct {
	Name    string
	Version string
	Roots   host.Roots
	Table   declare.Table
}

// Exit codes.
const (
	ExitOK    = 0
	ExitError = 1
	ExitUsage = 2
)

// Command runs a program that takes no arguments until ctx ends, and returns its exit
// code. It logs to stderr, in JSON.
func (p Program) Command(ctx context.Context, args []string, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintf(stderr, "%s: unexpected argument %q: it takes no arguments and needs no configuration\n", p.Name, args[0])
		return ExitUsage
	}
	log := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{ReplaceAttr: utc}))
	limitMemory()
	if err := p.run(ctx, log); err != nil {
		log.Error("stopped", "reason", err.Error())
		return ExitError
	}
	return ExitOK
}

func (p Program) run(ctx context.Context, log *slog.Logger) error {
	agent := New(p, log)
	p.prepare()
	p.confine(log)
	return agent.Run(ctx)
}

// prepare makes the directories that have to be there before the process confines
// itself, because afterwards only what exists can be allowed. One that cannot be made
// is reported by whoever needs it, and needs a restart when it can be.
func (p Program) prepare() {
	_ = os.MkdirAll(p.Roots.DevicePlugins, 0o750)
	_ = os.MkdirAll(p.Roots.CDI, 0o755)
}

// confine gives up everything that the loop does not need. /dev/vfio may only be
// listed: no device can be opened any more.
func (p Program) confine(log *slog.Logger) {
	nodes := p.Roots.VFIO()
	if _, err := os.Stat(nodes); err != nil {
		nodes = filepath.Dir(nodes) // it comes with the vfio module; outside a pod that may be later
	}
	report, err := confine.Process(confine.Access{
		Read:  []string{p.Roots.Sys},
		List:  []string{nodes},
		Write: []string{p.Roots.DevicePlugins, p.Roots.CDI, p.Roots.Run},
	})
	switch {
	case err != nil:
		log.Warn("running without Landlock", "reason", err.Error())
	case !report.Complete:
		log.Info("the kernel enforces only a part of the confinement, or none", "landlock", report.ABI, "reason", report.Why)
	}
}

// limitMemory trades a little work for memory: the process is idle nearly always, and
// its heap is small.
func limitMemory() {
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(32 << 20)
}

// utc keeps local time out of the log: the image has no time zones, and nodes that do
// would disagree.
func utc(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}
