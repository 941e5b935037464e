package agent

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"

	"kata-device-plugin/internal/confine"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/finding"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/lookout"
)

// Program is what makes one program of the agent.
type Program struct {
	Name    string
	Version string
	Roots   host.Roots
	// Source says what a look reads, and where; its field Sys is the agent's.
	Source host.Source
	// Rules are what is declared at first.
	Rules declare.Rules
	// Reload is asked before each look for the rules that are to be, and for what is wrong
	// with them. The rules are those that it returned last where nothing has changed. nil is
	// for rules that never change.
	Reload func() (declare.Rules, []finding.Finding)
	// Family names a node-wide lock that all of the program's offers need beside their own, ""
	// for none: agents that find their resources in the same hardware, and need not have the
	// names of resources in common, keep out of each other's way by it.
	Family string
	// Specs begins the names of the program's CDI specs. No other program's begin so, unless
	// there is none that comes and goes with a configuration.
	Specs string
	// Hardware are directories in which something changes when the hardware does, and Files
	// those that a configuration is in.
	Hardware, Files []string
	// Signals are other sources of events that may have changed the hardware.
	Signals []lookout.Signal
	// Granted is called before an answer that grants devices, and Holders with what is
	// announced and what containers have of it, whenever that may have changed, never both at
	// once: whoever was granted something before Holders is called is among the holders. nil is
	// for nobody to tell.
	Granted func(rules declare.Rules, resource string, devices []*declare.Device) error
	Holders func(rules declare.Rules, announced []declare.Resource, held map[string][]string) error
	// Holding asks kubelet who has which device, where its record on disk may be behind. nil is
	// for programs whose devices are of one resource for ever.
	Holding func(context.Context) (map[string][]string, error)
	// Access is what the process keeps when it confines itself. To Write the directories that
	// the agent writes to are added.
	Access confine.Access
	// Memory is where the runtime tries hard to collect garbage, in bytes.
	Memory int64
}

// Run runs the program until ctx ends. It confines the process.
func (p Program) Run(ctx context.Context, log *slog.Logger) error {
	debug.SetGCPercent(50) // trades a little work for memory: the process is idle nearly always
	debug.SetMemoryLimit(p.Memory)
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
	for _, dir := range p.Access.Write {
		_ = os.MkdirAll(dir, 0o755)
	}
}

// confine gives up everything that the loop does not need.
func (p Program) confine(log *slog.Logger) {
	access := p.Access
	access.Write = append([]string{p.Roots.DevicePlugins, p.Roots.CDI, p.Roots.Run}, access.Write...)
	report, err := confine.Process(access)
	switch {
	case err != nil:
		log.Warn("running without Landlock", "reason", err.Error())
	case !report.Complete:
		log.Info("the kernel enforces only a part of the confinement, or none", "landlock", report.ABI, "reason", report.Why)
	}
}
