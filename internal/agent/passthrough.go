package agent

import (
	"context"
	"fmt"
	"io"

	"kata-device-plugin/internal/confine"
	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/exit"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/journal"
)

// Passthrough is kata-device-plugin: the compile-time table, and nothing to configure.
func Passthrough(name, version string, roots host.Roots) Program {
	table := declare.Passthrough()
	return Program{
		Name: name, Version: version, Roots: roots,
		Source:   host.Source{Dev: devfs.Dir(roots.Dev), Wanted: table.Wants},
		Rules:    table,
		Specs:    "kata.",
		Hardware: []string{roots.VFIO(), roots.VFIODevices()},
		// /dev/vfio may only be listed: no device can be opened any more.
		Access: confine.Access{Read: []string{roots.Sys}, List: []string{confine.Nearest(roots.VFIO())}},
		Memory: 32 << 20,
	}
}

// Command runs a program that takes no arguments until ctx ends, and returns its exit
// code. It logs to stderr, in JSON.
func (p Program) Command(ctx context.Context, args []string, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintf(stderr, "%s: unexpected argument %q: it takes no arguments and needs no configuration\n", p.Name, args[0])
		return exit.Usage
	}
	log := journal.Logger(stderr)
	if err := p.Run(ctx, log); err != nil {
		log.Error("stopped", "reason", err.Error())
		return exit.Error
	}
	return exit.OK
}
