package exporter

import (
	"path/filepath"

	"kata-device-plugin/internal/confine"
	"kata-device-plugin/internal/exporter/podsapi"
)

// confine gives up the access to the file system that the exporter does not need, and the network
// where there is no port.
func (e *Exporter) confine() {
	access := confine.Access{
		// The metrics of the process itself are in /proc.
		Read: append(e.files.Trees(), e.roots.Sys, "/proc"),
		List: []string{confine.Nearest(e.roots.VFIO())},
		// Whose sockets kubelet and the plugins make anew each time they start.
		Connect: []string{e.roots.PodResources, e.roots.DevicePlugins, filepath.Dir(filepath.Join(e.options.Kubelet, podsapi.Socket))},
		Network: e.options.Listen != "",
	}
	access.Write = append(access.Write, e.roots.Run)
	if len(e.options.NICs) > 0 {
		access.List = append(access.List, e.roots.Dev)
	}
	if e.options.Web != "" {
		access.Read = append(access.Read, filepath.Dir(e.options.Web)) // with the keys and certificates beside it
	}
	if e.options.Textfile != "" {
		access.Write = append(access.Write, filepath.Dir(e.options.Textfile))
	}
	report, err := confine.Process(access)
	switch {
	case err != nil:
		e.log.Warn("running without Landlock", "reason", err.Error())
	case report.Why != "":
		e.log.Info("the kernel enforces only a part of the confinement, or none", "landlock", report.ABI, "reason", report.Why)
	}
}
