package collect_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"gotest.tools/v3/golden"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/collect"
	"kata-device-plugin/internal/nodelock"
)

// claimUID is that of a claim that holds a GPU.
const claimUID = "9f0c1f0e-5f63-4b3e-8a3b-000000000001"

// busy is a node with a bit of everything.
func busy(t *testing.T) (r *rig, kubelet *answers, plugins []*plugin) {
	t.Helper()
	r = newRig(t, preset(t, "workstation"))
	kubelet = r.serve(t)
	for _, name := range []string{
		"/var/lib/kubelet/device-plugins/kubelet.sock", "/var/lib/kubelet/device-plugins/kata-gpu-trainer-0.sock",
		"/var/lib/kubelet/plugins_registry/vfio.katacontainers.io-reg.sock",
		"/var/lib/kubelet/device-plugins/" + strings.Repeat("long", 20) + ".sock",
	} {
		plugins = append(plugins, r.plugin(t, name))
	}
	r.dead(t, "/var/lib/kubelet/device-plugins/left-over.sock")
	must(t, os.Symlink("kubelet.sock", filepath.Join(r.root, "var/lib/kubelet/device-plugins/link.sock")))
	r.write(t, "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", record(t))
	r.write(t, "/var/run/cdi/kata.nvidia.com-gpu.json", "{\n  \"cdiVersion\": \"0.6.0\",\n  \"kind\": \"nvidia.com/gpu\",\n  \"devices\": []\n}\n")
	r.write(t, "/etc/cdi/other.yaml", "kind: example.com/net # 10.20.30.40, 0c:42:a1:00:11:22\ncdiVersion: 0.6.0\n")
	r.write(t, "/etc/cdi/other.yml", "readers pass over it")
	r.write(t, "/opt/specs/linked.json", "{}\n")
	must(t, os.Symlink("../../opt/specs/linked.json", filepath.Join(r.root, "etc/cdi/linked.json")))
	must(t, os.Symlink("/proc", filepath.Join(r.root, "etc/cdi/out.json")))
	must(t, unix.Mkfifo(filepath.Join(r.root, "etc/cdi/fifo.json"), 0o600))
	r.write(t, "/etc/cdi/large.json", strings.Repeat(" ", 1<<20+1))
	r.write(t, "/var/lib/kubelet/plugins/vfio.katacontainers.io/claims/"+claimUID+".json", sealed(
		`{"schema":1,"uid":"`+claimUID+`","namespace":"team-blue","name":"two-gpus","boot":"x","state":"Prepared","devices":[{"pool":"worker-7","name":"gpu-0000-01-00-0"}]}`+"\n"))
	r.write(t, "/etc/containerd/config.toml", "version = 3\n# a comment\n[plugins.'io.containerd.cri.v1.runtime']\n  enable_cdi = true\n  cdi_spec_dirs = [\n    '/etc/cdi',\n    '/run/cdi' ]\n[auth]\n password = 's3cr3t'\n")
	r.write(t, "/var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\nstaticPodURLHeader: {token: [s3cr3t]}\ntopologyManagerPolicy: restricted\n"+
		"topologyManagerPolicyOptions: {max-allowable-numa-nodes: \"16\"}\nfeatureGates: {KubeletPodResourcesGet: true}\n")
	r.write(t, "/etc/kubernetes/kubelet/config.json", "{ s3cr3t\n")
	r.write(t, "/etc/crio/crio.conf.d/50-kata", "[crio.runtime.runtimes.kata-qemu]\nruntime_path = '/usr/bin/containerd-shim-kata-v2'\nruntime_type = 'vm'\nallowed_annotations = ['s3cr3t']\n")
	r.write(t, "/opt/kata/share/defaults/kata-containers/runtimes/qemu/configuration.toml",
		"[hypervisor.qemu]\npath = '/opt/kata'\nkernel_params = 'token=s3cr3t'\ncold_plug_vfio = \"root-port\"\npcie_root_port = 8\n[runtime]\nvfio_mode=\"guest-kernel\"\n")
	for name, mode := range map[string]os.FileMode{"/etc/cdi": 0o755, "/var/run/cdi": 0o755, "/etc/cdi/other.yaml": 0o666} {
		must(t, os.Chmod(filepath.Join(r.root, name), mode))
	}
	alone, err := nodelock.Take(filepath.Join(r.root, "var/run/cdi"), "nvidia.com/gpu", "kata-device-plugin trainer-0")
	must(t, err)
	shared, err := nodelock.TakeShared(filepath.Join(r.root, "var/run/cdi"), "nvidia.com/nvswitch", "first")
	must(t, err)
	free, err := nodelock.Take(filepath.Join(r.root, "var/run/cdi"), "x.org/y", "nobody")
	must(t, err, free.Release())
	t.Cleanup(func() { must(t, alone.Release(), shared.Release()) })
	locks, err := os.ReadFile("/proc/locks")
	must(t, err)
	r.write(t, "/proc/locks", string(locks))
	return r, kubelet, plugins
}

func sealed(body string) string {
	return fmt.Sprintf("sha256:%x %d\n%s", sha256.Sum256([]byte(body)), len(body), body)
}

// steady is what of a capture is the same each time, and on each machine.
func steady(t *testing.T, c *capture.Capture) string {
	t.Helper()
	text := written(t, c)
	text = regexp.MustCompile(`"TookMilliseconds": \d+`).ReplaceAllString(text, `"TookMilliseconds": 1`)
	text = strings.ReplaceAll(text, fmt.Sprintf("owner=%d:%d", os.Getuid(), os.Getgid()), "owner=0:0")
	// Hardware has tests of its own.
	return regexp.MustCompile(`(?m)^\w+ "?/(sys|dev)/.*\n(\t.*\n)*`).ReplaceAllString(text, "")
}

// TestBusyNode has all of a capture but the hardware in plain sight, also without names.
func TestBusyNode(t *testing.T) {
	r, kubelet, plugins := busy(t)
	c := r.capture(t)
	golden.Assert(t, steady(t, c), "busy.txt")
	golden.Assert(t, steady(t, again(t, capture.Redact(c, []byte("salt")))), "busy-redacted.txt")
	if strings.Contains(written(t, c), "s3cr3t") {
		t.Error("a secret is in the capture")
	}
	if l, a, o := kubelet.lists.Load(), kubelet.allocatables.Load(), kubelet.others.Load(); l != 1 || a != 1 || o != 0 {
		t.Errorf("kubelet was asked %d, %d and %d times, want 1, 1 and 0", l, a, o)
	}
	for i, p := range plugins {
		if p.connections.Load() != 1 || p.words.Load() != 0 {
			t.Errorf("plugin %d: %d connections, %d bytes said; want one without a word", i, p.connections.Load(), p.words.Load())
		}
	}
}

// TestNothingIsChanged: a capture leaves no trace on the node.
func TestNothingIsChanged(t *testing.T) {
	r, _, _ := busy(t)
	tree := func() string {
		var b strings.Builder
		must(t, filepath.Walk(r.root, func(at string, info os.FileInfo, err error) error {
			if err == nil {
				fmt.Fprintln(&b, at, info.Mode(), info.Size(), info.ModTime())
			}
			return err
		}))
		return b.String()
	}
	before := tree()
	r.capture(t)
	if diff := cmp.Diff(strings.Split(before, "\n"), strings.Split(tree(), "\n")); diff != "" {
		t.Errorf("the node is another (-before +after):\n%s", diff)
	}
}

// TestNoNodeIsOpened: whatever is below /dev is examined only. Files stand for the nodes: no
// event tells of a node that could not be opened.
func TestNoNodeIsOpened(t *testing.T) {
	r := newRig(t, preset(t, "workstation"))
	dev := r.Roots("test").Dev
	must(t, r.RemovePlaced("vfio0"), r.PlaceFile("vfio0", "x"), os.Remove(dev+"/vfio/vfio"), os.Remove(dev+"/vfio/2"))
	for _, name := range []string{"vfio/vfio", "vfio/2", "infiniband/uverbs0", "infiniband/rdma_cm", "vhost-net", "net/tun"} {
		r.write(t, "/dev/"+name, "x")
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	must(t, err)
	defer unix.Close(fd)
	for _, dir := range []string{"", "vfio", "vfio/devices", "infiniband", "net"} {
		_, err := unix.InotifyAddWatch(fd, filepath.Join(dev, dir), unix.IN_OPEN|unix.IN_ACCESS)
		must(t, err)
	}
	opened := func() (names []string) {
		buf := make([]byte, 1<<16)
		n, err := unix.Read(fd, buf)
		if err != nil {
			return nil // nothing happened
		}
		for at := 0; at < n; {
			mask := binary.NativeEndian.Uint32(buf[at+4:])
			length := int(binary.NativeEndian.Uint32(buf[at+12:]))
			if name := strings.TrimRight(string(buf[at+16:at+16+length]), "\x00"); mask&unix.IN_ISDIR == 0 {
				names = append(names, name)
			}
			at += 16 + length
		}
		return names
	}
	r.capture(t)
	if names := opened(); len(names) > 0 {
		t.Errorf("these were opened below /dev: %v", names)
	}
	_, err = os.ReadFile(dev + "/vfio/devices/vfio0")
	must(t, err)
	if len(opened()) == 0 {
		t.Error("the test does not notice that a node is opened")
	}
}

// TestStuck: a read of /sys that does not come back does not keep the rest.
func TestStuck(t *testing.T) {
	r := newRig(t, preset(t, "workstation"))
	const stuck = "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/max_link_speed"
	must(t, os.Remove(filepath.Join(r.root, stuck)), unix.Mkfifo(filepath.Join(r.root, stuck), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	done := make(chan error, 1)
	go func() { // opening it waits for the reader, which then waits for us
		f, err := os.OpenFile(filepath.Join(r.root, stuck), os.O_WRONLY, 0)
		cancel()
		if err == nil {
			<-release
			err = f.Close()
		}
		done <- err
	}()
	c, err := collect.Node(ctx, r.options())
	must(t, err)
	close(release)
	must(t, <-done)
	text := written(t, c)
	for _, want := range []string{
		"missing \"/sys and /dev\" \"there was no time left while reading " + stuck,
		"missing \"CDI specs\" \"there was no time left: context canceled\"",
		"file /sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/vendor \"0x10de\\n\"",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in the capture:\n%s", want, text)
		}
	}
}

// TestPartial: what cannot be read is missing, with the reason, and nothing else.
func TestPartial(t *testing.T) {
	for _, test := range []struct {
		what   string
		change func(t *testing.T, r *rig)
		want   string
	}{
		{"a file for a directory", func(t *testing.T, r *rig) {
			must(t, os.RemoveAll(filepath.Join(r.root, "var/run/cdi")))
			r.write(t, "/var/run/cdi", "")
		}, "missing /var/run/cdi \"open /var/run/cdi: not a directory\"\nerror /var/run/cdi op=open errno=ENOTDIR"},
		{"no kubelet", func(t *testing.T, r *rig) { r.dead(t, "/var/lib/kubelet/pod-resources/kubelet.sock") },
			"file /.capture/podresources/pods.json op=ask text=\nsocket /var/lib/kubelet/pod-resources/kubelet.sock mode=0755 state=refused"},
		{"a record that is no JSON", func(t *testing.T, r *rig) {
			r.write(t, "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{\"Data\": s3cr3t")
		}, "missing /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint \"it is no JSON at byte 10\""},
		{"a record of another kind", func(t *testing.T, r *rig) {
			r.write(t, "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{\"Data\": \"s3cr3t\"}")
		}, "missing /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint \"it is no record of kubelet's\""},
		{"settings with a list that does not end", func(t *testing.T, r *rig) {
			r.write(t, "/etc/containerd/config.toml", "cdi_spec_dirs = [\n'/etc/cdi',\npassword = 's3cr3t'\nenable_cdi = true\n")
		}, "\tcdi_spec_dirs = [\n\t'/etc/cdi',\n\tenable_cdi = true"},
		{"no list of locks", func(t *testing.T, r *rig) { r.write(t, "/var/run/cdi/kata.x-y.lock", "me") },
			"lock /var/run/cdi/kata.x-y.lock mode=0644 op=ask text=\"open /proc/locks: no such file or directory\""},
	} {
		t.Run(test.what, func(t *testing.T) {
			r := newRig(t, preset(t, "cpu-only"))
			test.change(t, r)
			text := strings.ReplaceAll(written(t, r.capture(t)), fmt.Sprintf(" owner=%d:%d", os.Getuid(), os.Getgid()), "")
			for want := range strings.SplitSeq(test.want, "\n") {
				if !strings.Contains(text, "\n"+want) {
					t.Errorf("%s is not in the capture:\n%s", want, text)
				}
			}
			if strings.Contains(text, "s3cr3t") || strings.Contains(text, r.root) {
				t.Error("a secret is in the capture, or a path of this machine")
			}
		})
	}
	if _, err := collect.Node(t.Context(), collect.Options{Root: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "want a node's root") {
		t.Errorf("a directory without sys: %v", err)
	}
}
