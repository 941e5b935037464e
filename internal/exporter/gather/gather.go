// Package gather reads what a node's sources say, one after the other, and keeps what each said
// last. It only reads: no device node is opened, and nothing is written anywhere.
package gather

import (
	"path/filepath"
	"slices"
	"time"

	"kata-device-plugin/internal/declare"
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/kubelet"
	"kata-device-plugin/internal/nodestate"
)

// Config says where to read.
type Config struct {
	Roots host.Roots
	// Kubelet is kubelet's root directory.
	Kubelet string
	// NICs are the configuration files of nic-device-plugin, none where it does not run, and
	// Prefix that of pools that name none.
	NICs   []string
	Prefix string
	// UIDs asks kubelet for the pods' UIDs as well.
	UIDs bool
}

// Files reads what is in files and directories. It is for one goroutine.
type Files struct {
	config  Config
	rules   *rules
	record  *kubelet.Checkpoint
	specs   []*specs // by rank
	sockets *sockets
}

// New makes a reader. Nothing is read yet.
func New(c Config) *Files {
	dev := devfs.Dir(c.Roots.Dev)
	return &Files{
		config: c, rules: newRules(c.NICs, c.Prefix), record: kubelet.NewCheckpoint(c.Roots.DevicePlugins),
		specs:   []*specs{newSpecs(c.Roots.StaticCDI, dev), newSpecs(c.Roots.CDI, dev)}, // later ones win
		sockets: &sockets{dir: c.Roots.DevicePlugins, seen: map[string]socket{}},
	}
}

// Directories are those in which something changes when a source does.
func (f *Files) Directories() []string {
	all := []string{f.config.Roots.DevicePlugins, f.config.Roots.StaticCDI, f.config.Roots.CDI, f.claims()}
	for _, file := range f.config.NICs {
		all = append(all, filepath.Dir(file))
	}
	return all
}

// Trees are the directories that everything which is read is below. Those exist before what is in
// them does.
func (f *Files) Trees() []string {
	return append(f.Directories(), filepath.Dir(f.claims()))
}

// AsksProfile says whether the NICs' configuration wants to know functions' DDP packages.
func (f *Files) AsksProfile() bool { return f.rules.profile.Load() }

func (f *Files) claims() string { return f.config.claimsDir() }

// Read brings everything up to date, but for the hardware and what kubelet has to be asked.
func (f *Files) Read(to *nodestate.Facts, now time.Time) {
	f.rules.read(to, now)
	table := declare.Passthrough()
	to.Rules = []declare.Rules{table}
	names := table.Names()
	if f.rules.known != nil {
		to.Rules = append(to.Rules, f.rules.known)
		names = append(slices.Clip(names), f.rules.known.Names()...)
	}
	readRecord(f.record, &to.Record, f.config.Roots.DevicePlugins, now)
	readSpecs(&to.Specs, f.specs, names, now)
	readClaims(&to.Claims, f.claims(), now)
	locks, err := readLocks(f.config.Roots.CDI, table, names)
	to.Locks.Took(locks, err, now)
	f.sockets.read(&to.Sockets, names, left(locks), now)
}
