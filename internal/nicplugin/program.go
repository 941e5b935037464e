// Package nicplugin makes nic-device-plugin of its parts: rules from configuration files, the
// kernel's network facts and events, device-info files, and the agent that all programs share.
package nicplugin

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"kata-device-plugin/internal/agent"
	"kata-device-plugin/internal/confine"
	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/devinfo"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/hostnet"
	"kata-device-plugin/internal/lookout"
	"kata-device-plugin/internal/nic"
	"kata-device-plugin/internal/nodelock"
	"kata-device-plugin/internal/podresources"
	"kata-device-plugin/internal/uevent"
)

// Options are what the command line says.
type Options struct {
	// Config are the configuration files. Those that exist are read, as one.
	Config []string
	// Prefix is that of resources whose pool names none, "" for the historical ones.
	Prefix string
	// Dev is where the host's /dev is seen, "" for /dev.
	Dev string
	// DeviceInfo is the directory of device-info files.
	DeviceInfo string
}

// DefaultConfig are the places where a configuration is looked for: our own, and those of the
// two plugins that this one replaces, whose ConfigMaps can be mounted as they are.
func DefaultConfig() []string {
	return []string{
		"/etc/nic-device-plugin/config.json",
		"/etc/pcidp/config.json",
		"/k8s-rdma-shared-dev-plugin/config.json",
	}
}

// New is nic-device-plugin on a node.
func New(name, version string, roots host.Roots, o Options, log *slog.Logger) agent.Program {
	if o.Dev != "" {
		roots.Dev = o.Dev
	}
	config := newLoader(o.Config, o.Prefix, log)
	rules, _ := config.load() // what is wrong is told when the agent asks
	files := &plumbing{files: devinfo.Files{Dir: o.DeviceInfo}}
	socket := filepath.Join(roots.PodResources, podresources.SocketName)
	return agent.Program{
		Name: name, Version: version, Roots: roots,
		Source: host.Source{
			Dev: devfs.Dir(roots.Dev), Wanted: nic.Wants, Network: nic.Wants,
			Links: hostnet.OwnOf(os.DirFS(roots.Sys)).Links, Profile: hostnet.ProfilesIf(config.profiles).Profile,
		},
		Rules:    rules,
		Reload:   config.load,
		Family:   nodelock.NICs,
		Specs:    "kata.nic.",
		Hardware: []string{roots.VFIO(), roots.VFIODevices(), filepath.Join(roots.Dev, "infiniband")},
		Files:    directories(o.Config),
		Signals: []lookout.Signal{
			{Name: "uevents", Open: uevent.Signals},
			{Name: "changes of links and routes", Open: hostnet.Events},
			{Name: "SIGHUP", Open: hangup},
		},
		Granted: files.grant,
		Holders: files.holders,
		Holding: func(ctx context.Context) (map[string][]string, error) { return holding(ctx, socket) },
		Access: confine.Access{
			Read:  append(append(directories(o.Config), targets(o.Config)...), roots.Sys),
			List:  []string{roots.Dev},
			Write: []string{o.DeviceInfo},
			// Whose socket kubelet makes anew each time it starts.
			Connect: []string{roots.PodResources},
		},
		Memory: 64 << 20,
	}
}

// holding are the devices that containers of running pods have, by resource. kubelet's record on
// disk tells the same, but keeps pods that have ended until it allocates the next device.
func holding(ctx context.Context, socket string) (map[string][]string, error) {
	kubelet := podresources.Dial(socket)
	defer kubelet.Close()
	pods, err := kubelet.Pods(ctx)
	if err != nil {
		return nil, err
	}
	held := map[string][]string{}
	for _, p := range pods {
		for _, c := range p.Containers {
			for _, d := range c.Devices {
				held[d.Resource] = append(held[d.Resource], d.ID)
			}
		}
	}
	return held, nil
}

// hangup makes SIGHUP a reason to look at everything anew.
func hangup(ctx context.Context) (<-chan struct{}, error) {
	in := make(chan os.Signal, 1)
	signal.Notify(in, syscall.SIGHUP)
	out := make(chan struct{})
	go func() {
		defer close(out)
		defer signal.Stop(in)
		for {
			select {
			case <-in:
			case <-ctx.Done():
				return
			}
			select {
			case out <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// targets are the directories that files are in which links lead to now: Landlock goes by what
// is there, and not by names.
func targets(files []string) []string {
	var all []string
	for _, f := range files {
		if target, err := filepath.EvalSymlinks(f); err == nil && filepath.Dir(target) != filepath.Dir(f) {
			all = append(all, filepath.Dir(target))
		}
	}
	return all
}

// directories are those that files are in, each once.
func directories(files []string) []string {
	var all []string
	seen := map[string]bool{}
	for _, f := range files {
		if dir := filepath.Dir(f); !seen[dir] {
			seen[dir] = true
			all = append(all, dir)
		}
	}
	return all
}
