package dradriver

import (
	"os"
	"path/filepath"

	"kata-device-plugin/internal/confine"
)

// confine gives up the access to the file system that the driver does not need. The network stays:
// the API server and Prometheus are there.
func (d *Driver) confine() {
	registry := filepath.Join(d.options.Kubelet, "plugins_registry")
	// Afterwards only what exists can be allowed. What cannot be made is reported by whoever needs it.
	for _, dir := range []string{d.roots.CDI, registry, d.data()} {
		_ = os.MkdirAll(dir, 0o755)
	}
	access := confine.Access{
		// Names are looked up with files in /etc, the runtime and the metrics of the process look
		// into /proc, and the API server's credentials are replaced where they are.
		Read:    []string{d.roots.Sys, d.roots.Proc, "/proc", "/etc", "/var/run/secrets"},
		List:    []string{confine.Nearest(d.roots.VFIO())},
		Write:   []string{d.roots.CDI, registry, d.roots.Run},
		Trees:   []string{d.data()},
		Connect: []string{d.roots.PodResources},
		Network: true,
	}
	for _, file := range []string{d.options.Kubeconfig, d.options.Web} {
		if file != "" {
			access.Read = append(access.Read, filepath.Dir(file)) // with the keys and certificates beside it
		}
	}
	report, err := confine.Process(access)
	switch {
	case err != nil:
		d.log.Warn("running without Landlock", "reason", err.Error())
	case report.ABI == 0:
		d.log.Info("the kernel enforces only a part of the confinement, or none", "landlock", report.ABI, "reason", report.Why)
	}
}
