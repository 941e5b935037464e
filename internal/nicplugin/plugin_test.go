package nicplugin

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kata-device-plugin/internal/sim"
)

const (
	vfio = "intel.com/vfio"
	net  = "intel.com/net"
	rdma = "nvidia.com/rdma"
	hca  = "rdma/hca"

	all = `{"resourceList": [
		{"resourceName": "vfio", "selectors": {"drivers": ["vfio-pci"]}},
		{"resourceName": "rdma", "resourcePrefix": "nvidia.com", "selectors": {"isRdma": true, "pfNames": ["ens1f0np0"]}, "additionalInfo": {"*": {"token": "a"}}},
		{"resourceName": "net", "selectors": {"pfNames": ["ENS1F0NP0#0"]}}]}`
)

// TestPodsView is what a container gets, from the configuration to the answer.
func TestPodsView(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.Start()
	p := n.run()
	n.awaitLog(p, "msg=ready", vfio+" 2/2", rdma+" 1/1", net+" 1/1")
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	n.awaitLog(p, "level=WARN", "historical", vfio)
	for _, c := range []struct {
		resource, id     string
		env              map[string]string
		nodes, cdi, info string
	}{
		{vfio, "0000:65:00.3", map[string]string{
			"PCIDEVICE_INTEL_COM_VFIO":      "0000:65:00.3",
			"PCIDEVICE_INTEL_COM_VFIO_INFO": `{"0000:65:00.3":{"generic":{"deviceID":"0000:65:00.3"},"vfio":{"dev-mount":"/dev/vfio/41","mount":"/dev/vfio/vfio"}}}`,
		}, "/dev/vfio/vfio rw, /dev/vfio/41 rw", vfio + "=0000:65:00.3",
			`{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.3","pf-pci-address":"0000:65:00.0"}}`},
		{net, "0000:65:00.2", map[string]string{
			"PCIDEVICE_INTEL_COM_NET":      "0000:65:00.2",
			"PCIDEVICE_INTEL_COM_NET_INFO": `{"0000:65:00.2":{"generic":{"deviceID":"0000:65:00.2"}}}`,
		}, "", "", `{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.2","pf-pci-address":"0000:65:00.0"}}`},
		{rdma, "0000:65:00.7", map[string]string{
			"PCIDEVICE_NVIDIA_COM_RDMA": "0000:65:00.7",
			"PCIDEVICE_NVIDIA_COM_RDMA_INFO": `{"0000:65:00.7":{"extra":{"token":"a"},"generic":{"deviceID":"0000:65:00.7"},"rdma":{"issm":"/dev/infiniband/issm7",` +
				`"rdma_cm":"/dev/infiniband/rdma_cm","rdma_dev":"mlx5_7","umad":"/dev/infiniband/umad7","uverbs":"/dev/infiniband/uverbs7"}}}`,
		}, "/dev/infiniband/rdma_cm rw, /dev/infiniband/issm7 rw, /dev/infiniband/umad7 rw, /dev/infiniband/uverbs7 rw", rdma + "=0000:65:00.7",
			`{"type":"pci","version":"1.1.0","pci":{"pci-address":"0000:65:00.7","rdma-device":"mlx5_7","pf-pci-address":"0000:65:00.0"}}`},
	} {
		answer, err := n.Allocate(c.resource, c.id)
		must(t, err)
		for name, want := range c.env {
			if got := answer.Envs[name]; got != want {
				t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
			}
		}
		var nodes, names []string
		for _, d := range answer.Devices {
			if d.HostPath != d.ContainerPath {
				t.Errorf("%s is %s in the container", d.HostPath, d.ContainerPath)
			}
			nodes = append(nodes, d.HostPath+" "+d.Permissions)
		}
		for _, d := range answer.CdiDevices {
			names = append(names, d.Name)
		}
		if got := strings.Join(nodes, ", "); got != c.nodes || len(answer.Envs) != len(c.env) || len(answer.Mounts)+len(answer.Annotations) > 0 {
			t.Errorf("%s: %s; %v", c.id, got, answer)
		}
		if got := strings.Join(names, " "); got != c.cdi {
			t.Errorf("%s: CDI %s", c.id, got)
		}
		file := filepath.Join(n.info, strings.ReplaceAll(c.resource, "/", "-")+"-"+c.id+"-device.json")
		if got, err := os.ReadFile(file); err != nil || string(got) != c.info {
			t.Errorf("%s: %s, %v", c.id, got, err)
		}
	}
}

// TestShares: a container with a share has the nodes of all HCAs of the pool, each once, and a
// share's CDI name stands for its own.
func TestShares(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(`{"configList": [{"resourceName": "hca", "rdmaHcaMax": 2, "selectors": {"drivers": ["mlx5_core"]}}]}`)
	n.Start()
	n.awaitLog(n.run(), "msg=ready")
	n.awaitHealthy(hca, "0000:65:00.7::0", "0000:65:00.7::1")
	answer, err := n.Allocate(hca, "0000:65:00.7::1", "0000:65:00.7::0")
	must(t, err)
	var nodes []string
	for _, d := range answer.Devices {
		nodes = append(nodes, d.HostPath+" "+d.Permissions)
	}
	slices.Sort(nodes)
	if got := strings.Join(nodes, ", "); got != "/dev/infiniband/issm7 rwm, /dev/infiniband/rdma_cm rwm, /dev/infiniband/umad7 rwm, /dev/infiniband/uverbs7 rwm" {
		t.Error(got)
	}
	if len(answer.Envs) > 0 || len(answer.CdiDevices) != 2 || answer.CdiDevices[0].Name != hca+"=0000:65:00.7::1" || len(n.files()) > 0 {
		t.Errorf("%v, %v", answer, n.files())
	}
}

// TestNoConfig: without a file there is nothing to do, and that is ready.
func TestNoConfig(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.Start()
	p := n.run()
	n.awaitLog(p, "msg=ready", "resource=[]")
	if len(p.log.Lines("level=WARN", "no configuration", n.config)) != 1 || len(p.log.Lines("level=ERROR")) > 0 {
		t.Error(p.log)
	}
	n.configure(`{"resourceList": []}`)
	n.awaitLog(p, "msg=configured", "resource=[]")
	n.configure(all)
	n.awaitHealthy(net, "0000:65:00.2")
}

// TestReload: a new configuration counts at once; a bad one is told with its place, and the one
// before stands, also after a restart of kubelet.
func TestReload(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.Start()
	p := n.run()
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	n.awaitLog(p, "msg=ready")

	n.configure("{\"resourceList\": [\n {\"resourceName\": \"vfio\", \"selectors\": {\"driver\": [\"vfio-pci\"]}}]}")
	n.awaitLog(p, "level=ERROR", "CFG001", "config.json:2:", `resourceList[0].selectors.driver`, "drivers")
	n.awaitLog(p, `msg="not ready"`, "CFG001")
	n.Stop()
	n.Start()
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")

	must(t, os.Remove(n.config))
	n.awaitLog(p, "level=ERROR", "CFG018", n.config)
	n.configure(`{"resourceList": [{"resourceName": "vfio", "selectors": {"drivers": ["vfio-pci"], "pfNames": ["ens1f0np0#1"]}}]}`)
	n.awaitHealthy(vfio, "0000:65:00.3")
	n.awaitHealthy(net)
	n.Await("ready again", func() bool { return len(p.log.Lines("msg=ready")) == 2 })
	n.awaitLog(p, "msg=unhealthy", "0000:65:00.4", "HST041")
	if _, err := n.Allocate(net, "0000:65:00.2"); err == nil {
		t.Error("a device is handed out that is not declared any more")
	}
	if len(p.log.Lines("CFG001")) != 3 { // found, not ready, no longer found
		t.Errorf("%q", p.log.Lines("CFG001"))
	}
}

// TestConfigMap: kubelet swaps a link to the directory that the files are in.
func TestConfigMap(t *testing.T) {
	n := newNode(t, sim.Adapters())
	dir := filepath.Dir(n.config)
	version := func(name, text string) {
		t.Helper()
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755), os.WriteFile(filepath.Join(dir, name, "config.json"), []byte(text), 0o644),
			os.Symlink(name, filepath.Join(dir, "..data_tmp")), os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	version("..1", `{"resourceList": [{"resourceName": "net", "selectors": {"pfNames": ["ens1f0np0#0"]}}]}`)
	must(t, os.Symlink("..data/config.json", n.config))
	n.Start()
	n.run()
	n.awaitHealthy(net, "0000:65:00.2")
	version("..2", all)
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
}

// TestDeviceInfoLife: the file of a device lives for as long as a pod has the device, also
// while the plugin is replaced; one that was removed meanwhile is written again.
func TestDeviceInfoLife(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.Start()
	p := n.run()
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	for _, id := range []string{"0000:65:00.3", "0000:65:00.4"} {
		_, err := n.Allocate(vfio, id)
		must(t, err)
	}
	file := func(id string) string { return "intel.com-vfio-" + id + "-device.json" }
	foreign := "other.com-x-0000:65:00.3-device.json"
	must(t, os.WriteFile(filepath.Join(n.info, foreign), nil, 0o444))
	is := func(want ...string) func() bool {
		slices.Sort(want)
		return func() bool { return slices.Equal(n.files(), want) }
	}
	n.hold(map[string][]string{vfio: {"0000:65:00.3", "0000:65:00.4"}, "other.com/x": {"0000:65:00.4"}})
	n.Await("both files", is(foreign, file("0000:65:00.3"), file("0000:65:00.4")))
	must(t, p.stop(), os.Remove(filepath.Join(n.info, file("0000:65:00.3"))))
	n.Forget()
	p = n.run()
	n.awaitLog(p, "msg=ready")
	n.Await("both files again", is(foreign, file("0000:65:00.3"), file("0000:65:00.4")))
	n.hold(map[string][]string{vfio: {"0000:65:00.3"}})
	n.Await("one file", is(foreign, file("0000:65:00.3")))
	n.hold(nil)
	n.Await("no file", is(foreign))
}

// TestOrphans: what a configuration left behind that was replaced while nobody ran goes, and
// nothing else does.
func TestOrphans(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.Start()
	p := n.run()
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	must(t, p.stop())
	n.Forget()
	foreign := filepath.Join(n.roots.CDI, "kata.nvidia.com-gpu.json")
	must(t, os.WriteFile(foreign, []byte(`{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[]}`), 0o644))
	n.configure(`{"resourceList": [{"resourceName": "net", "selectors": {"pfNames": ["ens1f0np0#0"]}}]}`)
	p = n.run()
	n.awaitLog(p, "removed the CDI spec", "kata.nic.intel.com-vfio.json")
	n.awaitLog(p, "removed the CDI spec", "kata.nic.nvidia.com-rdma.json")
	n.awaitHealthy(net, "0000:65:00.2")
	specs, err := filepath.Glob(filepath.Join(n.roots.CDI, "*.json"))
	must(t, err)
	if !slices.Equal(specs, []string{foreign}) {
		t.Errorf("%v", specs)
	}
}

// TestHostInUse: what begins to carry the host's traffic is handed out no more.
func TestHostInUse(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.Start()
	p := n.run()
	n.awaitHealthy(net, "0000:65:00.2")
	n.AddDefaultRoute("ens1f0v0", "inet6")
	n.happened()
	n.awaitHealthy(net)
	n.awaitLog(p, "HST006", "0000:65:00.2", "ens1f0v0")
	n.RemoveDefaultRoutes()
	n.happened()
	n.awaitHealthy(net, "0000:65:00.2")

	// What cannot be read is not gone, and that it cannot is said once.
	cause := errors.New("no buffer space available")
	n.AddDefaultRoute("ens1f0v0", "inet")
	n.happened()
	n.awaitHealthy(net)
	n.unread.Store(&cause)
	n.RemoveDefaultRoutes()
	n.happened()
	n.awaitLog(p, "msg=degraded", "links and routes", cause.Error())
	n.awaitHealthy(net)
	n.unread.Store(nil)
	n.happened()
	n.awaitLog(p, "msg=restored", "links and routes")
	n.awaitHealthy(net, "0000:65:00.2")
}

// TestInPod: a device that a pod has is hidden from the host, and stays what it was, also for a
// plugin that starts meanwhile.
func TestInPod(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.Start()
	p := n.run()
	n.awaitHealthy(net, "0000:65:00.2")
	n.awaitHealthy(rdma, "0000:65:00.7")
	n.hold(map[string][]string{net: {"0000:65:00.2"}, rdma: {"0000:65:00.7"}})
	must(t, n.MoveToPod("0000:65:00.2", false), n.MoveToPod("0000:65:00.7", true))
	n.happened()
	must(t, p.stop())
	n.Forget()
	p = n.run()
	n.awaitLog(p, "msg=ready")
	n.awaitHealthy(net, "0000:65:00.2")
	n.awaitHealthy(rdma, "0000:65:00.7")
	must(t, n.MoveToHost("0000:65:00.7"))
	n.hold(nil)
	n.happened()
	_, err := n.Allocate(rdma, "0000:65:00.7") // it looks by itself
	must(t, err)
}

// TestUnusableFile: what is no file, or cannot be read, is told, and nothing is lost.
func TestUnusableFile(t *testing.T) {
	n := newNode(t, sim.Adapters())
	must(t, os.Mkdir(n.config, 0o755))
	n.Start()
	p := n.run()
	n.awaitLog(p, "level=ERROR", "CFG001", n.config, "no regular file")
	if len(p.log.Lines("msg=ready")) > 0 {
		t.Error("it said that it was ready")
	}
	must(t, os.Remove(n.config))
	n.awaitLog(p, "msg=ready")
	must(t, os.WriteFile(n.config, []byte(" \n"), 0o644)) // what an editor leaves on a full disk
	n.awaitLog(p, "level=ERROR", "CFG001", "is empty", "resourceList")
	must(t, os.WriteFile(n.config, make([]byte, (4<<20)+1), 0o644))
	n.awaitLog(p, "level=ERROR", "CFG001", "has more than")
	must(t, os.Remove(n.config))
	n.Await("ready again", func() bool { return len(p.log.Lines("msg=ready")) == 2 })
}

// TestDeviceInfoUnwritable: where the files of devices cannot be written, no such device is
// handed out, and the plugin is not ready, so that nobody has to find out by failing pods.
func TestDeviceInfoUnwritable(t *testing.T) {
	n := newNode(t, sim.Adapters())
	n.configure(all)
	n.hold(nil)
	must(t, os.Remove(n.info), os.WriteFile(n.info, nil, 0o644)) // no directory: fails for root too
	n.Start()
	p := n.run()
	n.awaitLog(p, "level=ERROR", "PLG019", n.info)
	n.awaitHealthy(vfio, "0000:65:00.3", "0000:65:00.4")
	if _, err := n.Allocate(vfio, "0000:65:00.3"); err == nil || !strings.Contains(err.Error(), "device-info") {
		t.Errorf("got %v", err)
	}
	if len(p.log.Lines("msg=ready")) > 0 {
		t.Error("it said that it was ready")
	}
	must(t, os.Remove(n.info))
	n.happened()
	n.awaitLog(p, "msg=ready")
	_, err := n.Allocate(vfio, "0000:65:00.3")
	must(t, err)
}
