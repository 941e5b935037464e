package host

import "path/filepath"

// Roots are the directories that the programs touch. Everything they read or write
// lies below one of them, so that a test can point a program at another tree.
type Roots struct {
	// Sys is where sysfs is mounted.
	Sys string
	// Dev is where devtmpfs is mounted. Of it only the directory vfio is used.
	Dev string
	// Proc is where procfs is mounted. Of it only the ID of the boot is read, and for how long
	// the machine has been up.
	Proc string
	// DevicePlugins is kubelet's device plugin directory. Its place is a constant of
	// kubelet that does not follow --root-dir.
	DevicePlugins string
	// PodResources is the directory of the socket on which kubelet tells who has which device.
	PodResources string
	// CDI is the directory of generated CDI specs, and StaticCDI that of those that people write, which
	// runtimes read as well and which count less.
	CDI, StaticCDI string
	// Run is a program's own in-memory directory. It need not exist.
	Run string
}

// System is the layout of a Linux node. The program's name decides Run.
func System(program string) Roots { return Under("/", program) }

// Under is System's layout below another directory.
func Under(dir, program string) Roots {
	return Roots{
		Sys:           filepath.Join(dir, "sys"),
		Dev:           filepath.Join(dir, "dev"),
		Proc:          filepath.Join(dir, "proc"),
		DevicePlugins: filepath.Join(dir, "var/lib/kubelet/device-plugins"),
		PodResources:  filepath.Join(dir, "var/lib/kubelet/pod-resources"),
		CDI:           filepath.Join(dir, "var/run/cdi"),
		StaticCDI:     filepath.Join(dir, "etc/cdi"),
		Run:           filepath.Join(dir, "run", program),
	}
}

// VFIO is the directory of VFIO's nodes, Dev/vfio. It is what a pod mounts.
func (r Roots) VFIO() string { return filepath.Join(r.Dev, "vfio") }

// VFIODevices is the directory of VFIO's character devices, Dev/vfio/devices.
func (r Roots) VFIODevices() string { return filepath.Join(r.Dev, "vfio", "devices") }
