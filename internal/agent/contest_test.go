package agent

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// checkpoint writes what kubelet would believe.
func (n *node) checkpoint(devices map[string][]string) {
	n.t.Helper()
	var file struct {
		Data struct {
			PodDeviceEntries  []string
			RegisteredDevices map[string][]string
		}
		Checksum uint64
	}
	file.Data.RegisteredDevices = devices
	data, err := json.Marshal(file)
	must(n.t, err)
	aside := n.CheckpointPath() + ".tmp"
	must(n.t, os.WriteFile(aside, data, 0o600))
	must(n.t, os.Rename(aside, n.CheckpointPath()))
}

// TestContested: another plugin's list is reported with both sets and not fought; when
// that plugin has gone, ours is announced once more.
func TestContested(t *testing.T) {
	for _, c := range []struct {
		name   string
		theirs []string
	}{
		{"other names", []string{"GPU-1", "GPU-2"}},
		{"an empty list", []string{}},
		{"some of ours", []string{"0000:53:00.0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNode(t, platform(t, "hgx-h100"))
			n.Start()
			a := n.run(t, func(a *Agent) { a.times.foreign, a.times.differ = 20*time.Millisecond, 40*time.Millisecond })
			n.awaitAll()
			ours := map[string][]string{gpu: n.Bound(0x0302), nvswitch: n.Bound(0x0680)}
			n.checkpoint(ours)
			n.awaitLog(a, "msg=ready")
			rival, err := net.Listen("unix", filepath.Join(n.roots.DevicePlugins, "nvidia-gpu.sock"))
			must(t, err)
			t.Cleanup(func() { rival.Close() })
			go accept(rival)
			n.checkpoint(map[string][]string{gpu: c.theirs, nvswitch: ours[nvswitch]})
			n.awaitLog(a, "level=ERROR", "PLG007", gpu, "ours = [0000:53:00.0 ", "kubelet's = ["+strings.Join(c.theirs, " ")+"]")
			n.Await("not ready", func() bool { return len(a.log.Lines(`msg="not ready"`, "PLG007")) == 1 })
			for range 20 { // it is not fought
				must(t, a.agent.lookout.Refresh(t.Context()))
			}
			n.Mu.Lock()
			messages := n.Messages
			n.Mu.Unlock()
			if messages != 2 {
				t.Errorf("%d messages for two resources", messages)
			}
			if _, err := n.Allocate(gpu, "0000:64:00.0"); err != nil {
				t.Errorf("it does not serve any more: %v", err)
			}
			rival.(*net.UnixListener).SetUnlinkOnClose(false) // it is killed
			must(t, rival.Close())
			n.awaitLog(a, "registering once more", gpu)
			n.Await("one more announcement", func() bool { return n.Messages == 3 })
			n.checkpoint(ours)
			n.Await("readiness", func() bool { return len(a.log.Lines("msg=ready")) == 2 })
			if n.Messages != 3 {
				t.Errorf("%d messages", n.Messages)
			}
		})
	}
}

// TestContestedChange: that kubelet takes our changed list is no sign that the other plugin
// has gone: kubelet goes on to ask it for devices.
func TestContestedChange(t *testing.T) {
	n := newNode(t, platform(t, "gb200"))
	n.Start()
	a := n.run(t, func(a *Agent) { a.times.foreign, a.times.differ = 20*time.Millisecond, 40*time.Millisecond })
	n.awaitAll()
	n.checkpoint(map[string][]string{gpu: n.Bound(0x0302)})
	n.awaitLog(a, "msg=ready")
	rival, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(n.roots.DevicePlugins, "nvidia-gpu.sock"), Net: "unix"})
	must(t, err)
	t.Cleanup(func() { rival.Close() })
	go accept(rival)
	n.checkpoint(map[string][]string{gpu: {"GPU-1"}})
	n.awaitLog(a, `msg="not ready"`, "PLG007")
	must(t, n.Unbind(address(t, n.Bound(0x0302)[0])))
	n.Await("the change", func() bool { return len(n.Healthy(gpu)) == 3 })
	n.checkpoint(map[string][]string{gpu: n.Bound(0x0302)})
	for range 10 {
		must(t, a.agent.lookout.Refresh(t.Context()))
	}
	if n.serving() || len(a.log.Lines("no longer found", "PLG007")) > 0 {
		t.Errorf("the contest is over, and the other plugin is there: %s", a.log)
	}
	must(t, rival.Close())
	n.awaitLog(a, "registering once more", gpu)
	n.awaitLog(a, "no longer found", "PLG007")
	n.Await("readiness", func() bool { return len(a.log.Lines("msg=ready")) == 2 })
}

func accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.Close()
	}
}
