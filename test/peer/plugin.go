package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"kata-device-plugin/test/peer/wire"
)

// Plugin is the shipped plugin, in a container like that of its DaemonSet: uid 0 without
// capabilities, a read-only root that holds nothing but the program, and the mounts of
// the manifest. Its /sys is the simulated machine's, and nobody else's.
type Plugin struct {
	service
	// ReadOnlyCDI has the next life begin with a read-only mount of the CDI directory.
	ReadOnlyCDI bool
	// Without has the next life begin without the mount on this directory.
	Without string

	dir string // in the state directory, where the health socket is
}

// pluginName is the program's name, and that of its directory in /run.
const pluginName = "kata-device-plugin"

// AnotherPlugin is a plugin beside the node's own, as during a rollout that went wrong.
func (n *Node) AnotherPlugin() *Plugin {
	n.plugins++
	name := "plugin-" + strconv.Itoa(n.plugins)
	return &Plugin{service: service{box: n.box, name: name}, dir: name}
}

// Start starts the plugin. It returns when the process runs, which is before it has
// registered.
func (p *Plugin) Start(ctx context.Context) error {
	for _, d := range []string{"root", "run"} {
		if err := os.MkdirAll(filepath.Join(p.box.dir, p.dir, d), 0o755); err != nil {
			return fmt.Errorf("make the plugin's directories: %w", err)
		}
	}
	inside := filepath.Join(wire.StateDir, p.dir)
	return p.run(ctx, wire.Start{Path: "/" + pluginName, Container: &wire.Container{
		Root: filepath.Join(inside, "root"),
		Mounts: slices.DeleteFunc([]wire.Mount{
			{Source: filepath.Join(wire.ProgramDir, pluginName), Target: "/" + pluginName, ReadOnly: true},
			{Source: filepath.Join(wire.MachineDir, "sys"), Target: "/sys", ReadOnly: true},
			{Source: "/dev/vfio", Target: "/dev/vfio", ReadOnly: true},
			{Source: "/var/lib/kubelet/device-plugins", Target: "/var/lib/kubelet/device-plugins"},
			{Source: "/run/cdi", Target: "/var/run/cdi", ReadOnly: p.ReadOnlyCDI},
			{Source: filepath.Join(inside, "run"), Target: "/run/" + pluginName},
		}, func(m wire.Mount) bool { return m.Target == p.Without }),
	}})
}

// Terminate asks the plugin to end, as the removal of its pod does.
func (p *Plugin) Terminate(ctx context.Context) (Exit, error) { return p.Stop(ctx) }

// Restart ends the plugin with a signal, and starts it again.
func (p *Plugin) Restart(ctx context.Context, s syscall.Signal) error {
	if _, err := p.proc.end(ctx, s); err != nil {
		return err
	}
	return p.Start(ctx)
}

// Line is one of the plugin's log.
type Line struct {
	Level, Msg, Finding, Resource, Device, Reason string
}

// Lines are the plugin's log since the node's start, over all its lives. Device is empty
// where a line is about several.
func (p *Plugin) Lines() ([]Line, error) {
	text, err := os.ReadFile(p.box.Log(p.name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the plugin's log: %w", err)
	}
	var lines []Line
	for text := range bytes.Lines(text) {
		var raw map[string]any
		if !bytes.HasSuffix(text, []byte("\n")) {
			break // it is being written
		}
		if err := json.Unmarshal(text, &raw); err != nil {
			return nil, fmt.Errorf("read the plugin's log: %q: %w", text, err)
		}
		word := func(key string) string { s, _ := raw[key].(string); return s }
		lines = append(lines, Line{
			Level: word("level"), Msg: word("msg"), Finding: word("finding"),
			Resource: word("resource"), Device: word("device"), Reason: word("reason"),
		})
	}
	return lines, nil
}

// Count counts the lines for which a question is answered with yes.
func (p *Plugin) Count(is func(Line) bool) (int, error) {
	lines, err := p.Lines()
	count := 0
	for _, l := range lines {
		if is(l) {
			count++
		}
	}
	return count, err
}

// AwaitFinding waits until the plugin has logged a finding, by its ID.
func (p *Plugin) AwaitFinding(ctx context.Context, id string) error {
	return p.AwaitLine(ctx, "finding "+id, func(l Line) bool { return l.Finding == id && (l.Msg == "found" || l.Msg == "unhealthy") })
}

// AwaitLine waits for a line of the log.
func (p *Plugin) AwaitLine(ctx context.Context, what string, is func(Line) bool) error {
	return Await(ctx, what+" in the plugin's log", func(context.Context) error {
		count, err := p.Count(is)
		if err == nil && count == 0 {
			err = errors.Join(errors.New("there is no such line"), p.died())
		}
		return err
	})
}

// Health asks the plugin as the standard probe does; an empty name is readiness.
func (p *Plugin) Health(ctx context.Context, service string) (healthpb.HealthCheckResponse_ServingStatus, error) {
	conn, err := grpc.NewClient("unix://"+filepath.Join(p.box.dir, p.dir, "run/health.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, fmt.Errorf("ask the plugin for its health: %w", err)
	}
	defer conn.Close()
	resp, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		return 0, fmt.Errorf("ask the plugin for its health: %w", err)
	}
	return resp.GetStatus(), nil
}

// AwaitReady waits until readiness is as wanted. The plugin is to be alive meanwhile.
func (p *Plugin) AwaitReady(ctx context.Context, want bool) error {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if want {
		status = healthpb.HealthCheckResponse_SERVING
	}
	return Await(ctx, "readiness "+status.String(), func(ctx context.Context) error {
		if err := p.died(); err != nil {
			return err
		}
		got, err := p.Health(ctx, "")
		if err == nil && got != status {
			err = errors.New("it is " + got.String())
		}
		return err
	})
}

// Alive complains about a plugin that does not answer the liveness probe.
func (p *Plugin) Alive(ctx context.Context) error {
	got, err := p.Health(ctx, "liveness")
	if err == nil && got != healthpb.HealthCheckResponse_SERVING {
		err = errors.New("the plugin's liveness is " + got.String())
	}
	return err
}

// Probe runs the probe program of the image, with the arguments of the manifest.
func (p *Plugin) Probe(ctx context.Context, args ...string) (string, error) {
	socket := "-addr=unix://" + filepath.Join(wire.StateDir, p.dir, "run/health.sock")
	return p.box.Run(ctx, filepath.Join(wire.ProgramDir, "grpc-health-probe"), append([]string{socket}, args...)...)
}
