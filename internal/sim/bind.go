package sim

import (
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"kata-device-plugin/internal/pci"
)

// Step is one change that becomes visible at once.
type Step struct {
	Name string
	Do   func() error
}

// The names of the steps. A bind takes them in this order, those from StepGroup on
// for VFIO only. An unbind takes StepDriver first and then the others backwards,
// and what StepGroup does includes freeing the number.
const (
	StepOverride = "driver_override"
	StepDriver   = "driver"         // the two links and the uevent file
	StepGroup    = "group node"     // /dev/vfio/G, with its group's first device
	StepVFIODir  = "vfio-dev"       // the directory in the device's own
	StepVFIO     = "vfio-dev/vfioN" // without its dev file
	StepClass    = "class"          // /sys/class/vfio-dev/vfioN
	StepDev      = "dev"            // the dev file
	StepChar     = "char"           // /sys/dev/char/M:m; nothing without privilege
	StepNode     = "node"           // /dev/vfio/devices/vfioN
)

// Steps of NICs are named after what appears or vanishes: "net/eth0" for the directory in
// the device's own, "class/net/eth0" for the class link, "infiniband_verbs/uverbs0/node" for
// a node. This one changes nothing that is seen.
const StepNumbers = "numbers" // they become free

// cdev is a device's registration with VFIO.
type cdev struct {
	number int
	name   string // "vfio3", or "noiommu-vfio3"
}

// mode says what a bind makes.
type mode struct {
	vfio   bool   // a registration with VFIO
	noDev  bool   // without node, as a kernel without VFIO_DEVICE_CDEV
	prefix string // before the name of the cdev
}

// Bind binds a function to a driver, in the kernel's order. A VFIO driver gives it
// a cdev with the lowest free number. A function that has a driver, or that waits
// for its last user, gives EBUSY.
func (n *Node) Bind(a pci.Address, driver string) error {
	return n.run(n.BindSteps(a, driver))
}

// BindSteps is Bind taken apart, for states in between. The steps are meant to be
// done one after another, but each stands on its own feet, so that a test may leave
// some out. The number is taken by the first step that needs it.
func (n *Node) BindSteps(a pci.Address, driver string) ([]Step, error) {
	return n.planBind(a, driver, mode{vfio: isVFIODriver(driver)})
}

// BindVFIO binds a function to a driver that registers it with VFIO whatever its
// name is, such as nvidia in the vendor VFIO framework.
func (n *Node) BindVFIO(a pci.Address, driver string) error {
	return n.run(n.planBind(a, driver, mode{vfio: true}))
}

// BindWithoutCdev binds as on a kernel without CONFIG_VFIO_DEVICE_CDEV: there is
// vfio-dev/vfioN and its class entry, but no dev file and no node.
func (n *Node) BindWithoutCdev(a pci.Address, driver string) error {
	return n.run(n.planBind(a, driver, mode{vfio: true, noDev: true}))
}

// run does all steps of a plan.
func (n *Node) run(steps []Step, err error) error {
	if err != nil {
		return err
	}
	for _, s := range steps {
		if err := s.Do(); err != nil {
			return err
		}
	}
	return nil
}

// locked makes the steps that are handed out take the node's lock.
func (n *Node) locked(steps []Step) []Step {
	out := make([]Step, len(steps))
	for i, s := range steps {
		out[i] = Step{s.Name, func() error {
			n.mu.Lock()
			defer n.mu.Unlock()
			return s.Do()
		}}
	}
	return out
}

func (n *Node) planBind(a pci.Address, driver string, m mode) ([]Step, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.function(a)
	if err != nil {
		return nil, fmt.Errorf("bind to %s: %w", driver, err)
	}
	steps, err := n.bindSteps(d, driver, m)
	return n.locked(steps), err
}

// bind does all steps under a lock that is already held.
func (n *Node) bind(d *device, driver string, m mode) error {
	return n.run(n.bindSteps(d, driver, m))
}

// bindSteps plans a bind. The driver link comes before the probe
// (drivers/base/dd.c, really_probe), the group before the device
// (vfio_register_group_dev), the rest is device_add of drivers/base/core.c, which
// makes the class link before the dev file, and the node last.
func (n *Node) bindSteps(d *device, driver string, m mode) ([]Step, error) {
	name := filepath.Base(d.path)
	if d.driver != "" || d.held {
		return nil, fmt.Errorf("bind %s to %s: %w", name, driver, unix.EBUSY)
	}
	if err := n.ensureDriver(d.bus, driver); err != nil {
		return nil, fmt.Errorf("bind %s to %s: %w", name, driver, err)
	}
	b := binding{n: n, d: d, driver: driver, mode: m}
	steps := []Step{{StepDriver, b.addDriver}}
	if d.bus == "pci" || d.bus == "platform" { // others are made for their driver
		steps = append([]Step{{StepOverride, b.setOverride}}, steps...)
	}
	if m.vfio {
		steps = append(steps, Step{StepGroup, b.addGroup}, Step{StepVFIODir, b.addVFIODir},
			Step{StepVFIO, b.addVFIO}, Step{StepClass, b.addClass})
		if !m.noDev {
			steps = append(steps, Step{StepDev, b.addDev}, Step{StepChar, b.addChar}, Step{StepNode, b.addNode})
		}
	}
	if !m.vfio {
		more, err := n.nicSteps(d, driver)
		if err != nil {
			return nil, fmt.Errorf("bind %s to %s: %w", name, driver, err)
		}
		steps = append(steps, more...)
	}
	return wrap(steps, "bind "+name+" to "+driver), nil
}

// wrap makes the errors of steps say what was being done.
func wrap(steps []Step, doing string) []Step {
	for i, s := range steps {
		steps[i].Do = func() error {
			if err := s.Do(); err != nil {
				return fmt.Errorf("%s: %s: %w", doing, s.Name, err)
			}
			return nil
		}
	}
	return steps
}

// binding is a bind under way.
type binding struct {
	n      *Node
	d      *device
	driver string
	mode   mode
}

// cdev takes the number at first use.
func (b *binding) cdev() *cdev {
	if b.d.cdev == nil {
		number := b.n.cdevs.take()
		b.d.cdev = &cdev{number: number, name: b.mode.prefix + "vfio" + strconv.Itoa(number)}
	}
	return b.d.cdev
}

// dir is the directory of the registration below /sys.
func (b *binding) dir() string { return b.d.path + "/vfio-dev/" + b.cdev().name }

func (b *binding) setOverride() error {
	override := ""
	if needsOverride(b.driver) || b.d.bus == "platform" {
		override = b.driver
	}
	if override == b.d.override {
		return nil
	}
	b.d.override = override
	return b.n.replaceFile(b.n.sys(b.d.path+"/driver_override"), 0o644, overrideText(b.d))
}

func (b *binding) addDriver() error {
	b.d.driver = b.driver
	if err := b.n.rewriteState(b.d, b.mode.vfio); err != nil {
		return err
	}
	drivers := "bus/" + b.d.bus + "/drivers/" + b.driver
	if err := b.n.link(drivers+"/"+filepath.Base(b.d.path), b.d.path); err != nil {
		return err
	}
	return b.n.link(b.d.path+"/driver", drivers)
}

func (b *binding) addGroup() error {
	b.cdev() // the number is taken first (drivers/vfio/vfio_main.c, vfio_init_device)
	return b.n.openGroupNode(b.d.group)
}

func (b *binding) addVFIODir() error { return b.n.ensureDir(b.d.path + "/vfio-dev") }

func (b *binding) addVFIO() error {
	uevent := ""
	if !b.mode.noDev {
		uevent = b.n.ueventText(cdevMajor, b.cdev().number, "vfio/devices/"+b.cdev().name)
	}
	return b.n.publish(b.dir(), nil, []file{{name: "uevent", mode: 0o644, text: uevent}},
		map[string]string{"device": b.d.path, "subsystem": "class/vfio-dev"})
}

func (b *binding) addClass() error { return b.n.link("class/vfio-dev/"+b.cdev().name, b.dir()) }

func (b *binding) addDev() error {
	return b.n.replaceFile(b.n.sys(b.dir()+"/dev"), 0o444, b.n.devText(cdevMajor, b.cdev().number))
}

func (b *binding) addChar() error { return b.n.linkChar(cdevMajor, b.cdev().number, b.dir()) }

func (b *binding) addNode() error {
	if err := b.n.ensureVFIODevices(); err != nil {
		return err
	}
	name := filepath.Join(b.n.vfioDevices(), b.cdev().name)
	return b.n.mknod(name, 0o600, cdevMajor, b.cdev().number)
}

// rewriteState brings the files that tell of a driver up to date.
func (n *Node) rewriteState(d *device, vfio bool) error {
	if d.bus != "pci" {
		return n.replaceFile(n.sys(d.path+"/uevent"), 0o644, otherUevent(d))
	}
	// VFIO drivers enable a device when it is opened.
	if enabled := d.driver != "" && !vfio; enabled != d.enabled {
		d.enabled = enabled
		text := map[bool]string{false: "0\n", true: "1\n"}[enabled]
		if err := n.replaceFile(n.sys(d.path+"/enable"), 0o644, text); err != nil {
			return err
		}
	}
	return n.replaceFile(n.sys(d.path+"/uevent"), 0o644, pciUevent(d))
}

// linkChar makes the entry of a device number. Without privilege all devices have
// one and the same number, so there is none.
func (n *Node) linkChar(major, minor int, to string) error {
	if !n.real {
		return nil
	}
	return n.link(fmt.Sprintf("dev/char/%d:%d", major, minor), to)
}

func (n *Node) unlinkChar(major, minor int) error {
	if !n.real {
		return nil
	}
	return n.unlink(fmt.Sprintf("dev/char/%d:%d", major, minor))
}
