package capture_test

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"kata-device-plugin/internal/capture"
)

const (
	podUID   = "3c1a5c33-1111-4222-8333-444444444444"
	claimUID = "9f0c1f0e-5f63-4b3e-8a3b-000000000001"
	static   = "8fd1e5a0b6a14a6c9d2f0a5a9b7c1d2e" // as kubelet makes for pods from files
	mdev     = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"
)

// secrets are names that somebody may want to keep.
func secrets() []string {
	return []string{
		"worker-7", "example.org", "team-red", "team-blue", "trainer-0", "llm", "sidecar", "two-gpus", "0b7c1bb4-6a28",
		podUID, claimUID, static, mdev, "0c42a1001122", "0c:42:a1", "10.20.30.40", "fe80::1", "e8ebd30003a1c6e8",
	}
}

// secretive is a capture with all of them in many places.
func secretive() string {
	claim := `{"uid":"` + claimUID + `","namespace":"team-blue","name":"two-gpus","devices":[{"pool":"worker-7","name":"gpu-0000-41-00-0"}]}`
	return first + strings.Join([]string{
		`meta hostname worker-7.example.org`, `meta boot 0b7c1bb4-6a28-4c3f-9c7f-3a0e7a3f5a10`, `meta kubelet-dir /var/lib/kubelet`,
		`missing /var/lib/kubelet/device-plugins/trainer-0.sock "dial 10.20.30.40:443 for team-red/trainer-0: refused"`,
		`links complete`, `link 2 enx0c42a1001122`, `link 3 ens1f0`, `default 2 inet 254`,
		`file /.capture/podresources/pods.json text`,
		"\t" + `{"TookMilliseconds": 1, "Pods": [{"Namespace": "team-red", "Name": "trainer-0", "Containers": [{"Name": "sidecar",`,
		"\t" + `"Devices": [{"Resource": "nvidia.com/gpu", "ID": "0000:41:00.0"}], "Claims": null}]},`,
		"\t" + `{"Namespace": "team-blue", "Name": "llm", "Containers": [{"Name": "gpu", "Claims": [{"Namespace": "team-blue", "Name": "two-gpus",`,
		"\t" + `"Devices": [{"Driver": "vfio.katacontainers.io", "Pool": "worker-7.example.org", "Device": "gpu-0000-41-00-0", "CDI": ["vfio.katacontainers.io/claim=` + claimUID + `-gpu-0000-41-00-0"]}]}]}]}]}`,
		`file /sys/class/net/speed "sidecar\n"`,
		`file /sys/devices/pci0000:40/0000:41:00.0/net/enx0c42a1001122/phys_switch_id "e8ebd30003a1c6e8\n"`,
		`dir /sys/devices/pci0000:40/0000:41:00.0/net`, "\tenx0c42a1001122",
		`symlink /sys/class/vfio-dev/vfio9 ../../devices/virtual/mtty/mtty/` + mdev + `/vfio-dev/vfio9`,
		`file /sys/devices/virtual/mtty/mtty/` + mdev + `/vfio-dev/vfio9/dev "511:9\n"`,
		`dir /var/lib/kubelet/device-plugins`, "\tgpu-trainer-0.sock", "\tkubelet.sock", "\tkubelet_internal_checkpoint", "\tx-" + static + ".sock",
		`socket /var/lib/kubelet/device-plugins/gpu-trainer-0.sock state="no answer from worker-7"`,
		`socket /var/lib/kubelet/device-plugins/x-` + static + `.sock op=connect text="team-blue is busy, says fe80::1."`,
		`file /var/lib/kubelet/device-plugins/kubelet_internal_checkpoint text`,
		"\t" + `{"Data": {"PodDeviceEntries": [{"PodUID": "` + static + `", "ContainerName": "sidecar", "ResourceName": "team-red.io/sidecar", "DeviceIDs": {"0": ["0000:41:00.0"]},`,
		"\t" + `"Answer": {"Mounts": ["/var/lib/kubelet/pods/` + static + `/worker-7:/x"]}}, {"PodUID": "` + podUID + `"}], "RegisteredDevices": {"nvidia.com/gpu": []}}, "Checksum": 1}`,
		`file /var/lib/kubelet/plugins/vfio.katacontainers.io/claims/` + claimUID + `.json text`,
		"\t" + fmt.Sprintf("sha256:%x %d", sha256.Sum256([]byte(claim+"\n")), len(claim)+1), "\t" + claim,
		`file /var/run/cdi/foreign.json "{\"kind\": \"nvidia.com/gpu\", \"for\": \"pod trainer-0 of team-red, mac 0c:42:a1:00:11:22\"}"`,
		`file /etc/cdi/odd.json "{\"for\": \"llm\", "`,
		`file /etc/cdi/for-llm.yaml "# llm on worker-7, GPU-` + mdev + `\n"`,
		`symlink /etc/cdi/link.json for-llm.yaml`,
		`lock /var/run/cdi/kata.nvidia.com-gpu.lock state=held "kata-device-plugin, pod trainer-0"`, "",
	}, "\n")
}

// TestRedact: nothing of a list of secrets is left, and what a fault is found by is.
func TestRedact(t *testing.T) {
	before := read(t, secretive())
	text := written(t, before)
	for _, s := range secrets() {
		if !strings.Contains(text, s) {
			t.Errorf("%s is not in the capture to begin with", s)
		}
	}
	c := capture.Redact(before, []byte("salt"))
	after := written(t, c)
	for _, s := range secrets() {
		for line := range strings.Lines(after) {
			// Below /sys there are no names of pods, but there may be words like them. So may there
			// be in the names of resources.
			if strings.Contains(strings.ReplaceAll(line, "team-red.io/sidecar", ""), s) && !strings.Contains(line, "/speed") {
				t.Errorf("%s is still there: %s", s, line)
			}
		}
	}
	for _, s := range []string{
		"meta redacted yes", "meta kubelet-dir /var/lib/kubelet\n", "\"nvidia.com/gpu\"", "0000:41:00.0", "vfio.katacontainers.io", "gpu-0000-41-00-0", "link 3 ens1f0",
		"\"ResourceName\": \"team-red.io/sidecar\"", "/speed \"sidecar\\n\"", "\tkubelet.sock\n", "\tkubelet_internal_checkpoint\n", "\"511:9\\n\"",
		"/var/run/cdi/kata.nvidia.com-gpu.lock", "state=held \"kata-device-plugin, pod name-", "\"TookMilliseconds\": 1", "\"Checksum\": 1",
	} {
		if !strings.Contains(after, s) {
			t.Errorf("%s is not there any more:\n%s", s, after)
		}
	}
	if written(t, before) != text {
		t.Error("the capture itself was changed")
	}
}

// TestRedactedSame: a name is the same word wherever it is, also in another capture of the same
// salt, and another word with another salt.
func TestRedactedSame(t *testing.T) {
	c := capture.Redact(read(t, secretive()), []byte("salt"))
	pods, err := c.Pods()
	must(t, err)
	red, blue := pods.Pods[0], pods.Pods[1]
	claim := blue.Containers[0].Claims[0]
	if claim.Namespace != blue.Namespace || red.Namespace == blue.Namespace || claim.Devices[0].Pool != c.Meta.Hostname {
		t.Errorf("%+v on %s", pods, c.Meta.Hostname)
	}
	uid := regexp.MustCompile(`claim=([0-9a-f-]{36})-gpu`).FindStringSubmatch(claim.Devices[0].CDI[0])
	if uid == nil {
		t.Fatalf("%v has no UID any more", claim.Devices)
	}
	record, ok := c.Entry("/var/lib/kubelet/plugins/vfio.katacontainers.io/claims/" + uid[1] + ".json")
	if !ok {
		t.Fatalf("the claim's record is elsewhere:\n%s", written(t, c))
	}
	seal, body, _ := strings.Cut(string(record.Text), "\n")
	if seal != fmt.Sprintf("sha256:%x %d", sha256.Sum256([]byte(body)), len(body)) || !strings.Contains(body, `"name":"`+claim.Name+`"`) {
		t.Errorf("the record is %s", record.Text)
	}
	if text, err := c.Sys().ReadFile("class/vfio-dev/vfio9/dev"); string(text) != "511:9\n" || err != nil {
		t.Errorf("a link does not lead where it did: %q, %v", text, err)
	}
	checkpoint, err := c.Checkpoint()
	must(t, err)
	if in := checkpoint.Data.PodDeviceEntries[0]; in.ContainerName != red.Containers[0].Name || !strings.Contains(in.Answer.Mounts[0], in.PodUID) {
		t.Errorf("%+v", in)
	}

	_, rest, found := strings.Cut(secretive(), "file /.capture")
	if !found {
		t.Fatal("the capture has no file /.capture")
	}
	other := capture.Redact(read(t, first+"meta hostname x\nfile /.capture"+rest), []byte("salt"))
	same, err := other.Pods()
	must(t, err)
	if same.Pods[0].Name != red.Name {
		t.Errorf("in another capture %s is %s", red.Name, same.Pods[0].Name)
	}
	salted, err := capture.Redact(read(t, secretive()), []byte("pepper")).Pods()
	must(t, err)
	if salted.Pods[0].Name == red.Name {
		t.Error("the salt makes no difference")
	}
}

// TestShortNames: a name of a letter or two is replaced where it is a name, and a word elsewhere.
func TestShortNames(t *testing.T) {
	c := capture.Redact(read(t, first+"meta hostname n1\n"+
		`file /.capture/podresources/pods.json "{\"Pods\": [{\"Name\": \"a\", \"Namespace\": \"n\"}]}"`+"\n"+
		`file /etc/cdi/x.yaml "a pod: n"`+"\n"), nil)
	text := written(t, c)
	if strings.Contains(text, `\"a\"`) || strings.Contains(text, "n1") || !strings.Contains(text, `"a pod: n"`) {
		t.Error(text)
	}
}

// TestMask: addresses are masked, and nothing that looks a little like one.
func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		"":                               "",
		"10.20.30.40":                    "x.x.x.x",
		"dial 10.20.30.40:443: refused":  "dial x.x.x.x:443: refused",
		"10.0.0.0/8, 10.0.0.1-10.0.0.9.": "x.x.x.x/8, x.x.x.x-x.x.x.x.",
		"http://[fe80::1]:80/ and ::1,":  "http://[x.x.x.x]:80/ and x.x.x.x,",
		"fe80::1 2001:db8:0:0:0:0:0:1":   "x.x.x.x x.x.x.x",
		"mac=0c:42:A1:00:11:22,":         "mac=xx:xx:xx:xx:xx:xx,",
		"0c-42-a1-00-11-22":              "xx:xx:xx:xx:xx:xx",
		"0c42:a103:0011:2233":            "xx:xx:xx:xx:xx:xx",
		"00:00:10:29:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:11:22:33": "xx:xx:xx:xx:xx:xx",
		"0000:41:00.0":                                          "0000:41:00.0",
		"0000:65:00.7::0":                                       "0000:65:00.7::0",
		"/sys/devices/pci0000:40/10000:41:00.0":                 "/sys/devices/pci0000:40/10000:41:00.0",
		"6.12.0, 5.15.0-1053.58, v1.37.2":                       "6.12.0, 5.15.0-1053.58, v1.37.2",
		"5.4.17-2136.330.7.5.el8":                               "5.4.17-2136.330.7.5.el8",
		"2026-03-01T12:00:00Z":                                  "2026-03-01T12:00:00Z",
		"9f0c1f0e-5f63-4b3e-8a3b-000000000001-gpu-0000-41-00-0": "9f0c1f0e-5f63-4b3e-8a3b-000000000001-gpu-0000-41-00-0",
		"sha256:0c42a1001122 12":                                "sha256:0c42a1001122 12",
		"511:0 cdi.k8s.io/x std::string ::":                     "511:0 cdi.k8s.io/x std::string ::",
		"2001:db8::/32 fe80::1%eth0":                            "x.x.x.x/32 x.x.x.x%eth0",
		"10.0.0.1. And 10.0.0.2:":                               "x.x.x.x. And x.x.x.x:",
	} {
		c := capture.New(capture.Meta{})
		c.Add(capture.Entry{Path: "/etc/x", Kind: capture.File, Text: []byte(in)})
		c.Add(capture.Entry{Path: "/sys/x", Kind: capture.File, Text: []byte(in)})
		capture.Mask(c)
		e, _ := c.Entry("/etc/x")
		if string(e.Text) != want {
			t.Errorf("%q is %q, want %q", in, e.Text, want)
		}
		if e, _ := c.Entry("/sys/x"); string(e.Text) != in {
			t.Errorf("%q is %q below /sys", in, e.Text)
		}
	}
}
