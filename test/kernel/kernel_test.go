package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kata-device-plugin/test/kernel/wire"
)

// logsVariable names a directory in which logs are kept, also of machines that pass.
const logsVariable = "KERNEL_LOGS"

// TestKernel runs every scenario on every machine. It takes root only where packages are missing.
func TestKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it starts virtual machines, and builds a kernel when there is none in the cache")
	}
	if value := os.Getenv(childVariable); value != "" {
		killedMachine(t, value)
		return
	}
	begun := time.Now()
	lab, err := Prepare(t.Context(), os.Stderr)
	if errors.Is(err, ErrMissing) && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("ready after %s: kernel %s, QEMU %s and %s", time.Since(begun).Round(time.Second), lab.Release, lab.Small.Version, lab.SRIOV.Version)
	for _, m := range Machines() {
		t.Run(m.Name, func(t *testing.T) { runMachine(t, lab, m) })
	}
	t.Run("a killed run leaves nothing", func(t *testing.T) { machineIsKilled(t, lab) })
}

func runMachine(t *testing.T, lab *Lab, m Machine) {
	dir := logs(t, lab, m)
	ctx := t.Context()
	r, err := lab.Boot(ctx, m, dir)
	if err != nil {
		t.Error(err)
	}
	t.Logf("the guest's first line came after %s, its end after %s", r.Kernel.Round(10*time.Millisecond), r.Total.Round(10*time.Millisecond))
	for _, name := range m.Scenarios {
		t.Run(name, func(t *testing.T) {
			result, ran := r.Results[name]
			if !ran {
				t.Fatal("it did not run")
			}
			t.Logf("%s in the guest", result.Took.Round(time.Millisecond))
			for _, n := range result.Notes {
				t.Log(n)
			}
			for _, e := range result.Errors {
				t.Error(e)
			}
		})
	}
	if len(r.Tables) > 0 {
		t.Run("the simulator does not differ", func(t *testing.T) { compare(t, r.Tables) })
	}
	if t.Failed() {
		t.Logf("the end of the plugin's log:\n%s", end(filepath.Join(dir, pluginLog)))
	}
}

// compare has a subtest for each state that was taken down.
func compare(t *testing.T, tables []wire.Line) {
	differences, err := Replay(tables)
	if err != nil {
		t.Error(err)
	}
	for _, table := range tables {
		t.Run(table.Name, func(t *testing.T) {
			all, compared := differences[table.Name]
			if !compared {
				t.Fatal("it was not compared")
			}
			t.Logf("%d entries", len(table.Table))
			for _, d := range all {
				t.Error(d)
			}
		})
	}
}

// logs is where a machine's logs go. Those of one that fails are kept.
func logs(t *testing.T, lab *Lab, m Machine) string {
	t.Helper()
	name := strings.ReplaceAll(m.Name, " ", "-")
	parent := os.Getenv(logsVariable)
	if parent == "" {
		parent = lab.room.dir
	}
	dir := filepath.Join(parent, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !t.Failed() || parent != lab.room.dir {
			return
		}
		kept, err := os.MkdirTemp("", "kernel-"+name+"-")
		if err := errors.Join(err, os.Rename(dir, filepath.Join(kept, name))); err != nil {
			t.Errorf("keep the logs: %v", err)
		}
		t.Logf("the logs are in %s", kept)
	})
	return dir
}

func end(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return tail(string(text), 60)
}
