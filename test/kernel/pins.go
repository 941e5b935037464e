package kernel

// What the test bed is made of. To go to another kernel, change sourcePackage; the rest follows.
const (
	// sourcePackage is Debian's package of the kernel's source.
	sourcePackage = "linux-source-6.12"
	// sourceTried and qemuTried are the versions that this was last seen to work with. The archive
	// keeps only the newest of each, so another one is taken, and said.
	sourceTried = "6.12.95-1~bpo12+1"
	qemuTried   = "1:10.0.2+ds-2+deb13u1~bpo12+1"
	// qemuSRIOV is the first QEMU with a device that has virtual functions (igb).
	qemuSRIOV = 8
)

// qemuPackages are unpacked privately where the installed QEMU is older than qemuSRIOV. Their
// libraries are those of the installed one.
func qemuPackages() []string {
	return []string{"qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"}
}

// need is a file or program that a Debian package brings.
type need struct{ pkg, program, file string }

// toRun is what running takes beyond Go, and toBuild what fetching and building takes, once.
func toRun() []need {
	return []need{{pkg: "qemu-system-x86", program: emulator}}
}

func toBuild() []need {
	return []need{
		{pkg: "apt", program: "apt-get"}, {pkg: "dpkg", program: "dpkg-deb"},
		{pkg: "gcc", program: "gcc"}, {pkg: "make", program: "make"}, {pkg: "libc6-dev", file: "/usr/include/stdio.h"},
		{pkg: "bc", program: "bc"}, {pkg: "flex", program: "flex"}, {pkg: "bison", program: "bison"},
		{pkg: "libelf-dev", file: "/usr/include/libelf.h"}, {pkg: "xz-utils", program: "xz"},
	}
}

// modules are what the guest loads, in this order.
func modules() []string {
	return []string{"irqbypass", "iommufd", "vfio", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci", "mdev", "mtty"}
}
