package uevent

import (
	"slices"
	"strings"
	"testing"
)

// message is an announcement as the kernel lays it out.
func message(lines ...string) string { return strings.Join(lines, "\x00") + "\x00" }

const pciPath = "/devices/pci0000:40/0000:40:01.0/0000:41:00.0"

func TestConcerns(t *testing.T) {
	bind := []string{
		"bind@" + pciPath, "ACTION=bind", "DEVPATH=" + pciPath, "SUBSYSTEM=pci", "DRIVER=vfio-pci", "PCI_CLASS=20000",
		"PCI_SLOT_NAME=0000:41:00.0", "SEQNUM=4711",
	}
	for _, c := range []struct {
		name, msg string
		want      bool
	}{
		{"a function is bound", message(bind...), true},
		{"it is cut off at the end", message(bind[:5]...)[:70], false},
		{"it is cut off after the subsystem", message(bind[:4]...), true},
		{"an interface comes", message("add@"+pciPath+"/net/eth0", "ACTION=add", "SUBSYSTEM=net", "INTERFACE=eth0", "IFINDEX=3"), true},
		{"a pod's interface comes", message("add@/devices/virtual/net/veth0", "ACTION=add", "SUBSYSTEM=net", "INTERFACE=veth0", "IFINDEX=4"), false},
		{"a queue of it", message("add@"+pciPath+"/net/eth0/queues/rx-0", "ACTION=add", "SUBSYSTEM=queues"), false},
		{"a verbs node", message("add@"+pciPath+"/infiniband_verbs/uverbs0", "SUBSYSTEM=infiniband_verbs", "DEVNAME=infiniband/uverbs0"), true},
		{"a disk", message("change@/devices/virtual/block/loop0", "ACTION=change", "SUBSYSTEM=block"), false},
		{"no subsystem", message("add@/module/vfio", "ACTION=add"), false},
		{"a longer name", message("add@/devices/x", "SUBSYSTEM=network"), false},
		{"a shorter name", message("add@/devices/x", "SUBSYSTEM=ne"), false},
		{"an empty name", message("add@/devices/x", "SUBSYSTEM="), false},
		{"another key", message("add@/devices/x", "MYSUBSYSTEM=net"), false},
		{"a driver's own key after the kernel's", message("add@/devices/x", "SUBSYSTEM=block", "SUBSYSTEM=net"), false},
		{"udev's message", message("libudev", "SUBSYSTEM=net"), false},
		{"no action", message("@/devices/x", "SUBSYSTEM=net"), false},
		{"no path", message("add@devices", "SUBSYSTEM=net"), false},
		{"no header", message("", "SUBSYSTEM=net"), false},
		{"no end", "add@/devices/x\x00SUBSYSTEM=net", true},
		{"nothing", "", false},
	} {
		if got := concerns([]byte(c.msg)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	for _, s := range subsystems() {
		if !concerns([]byte(message("remove@/devices/x", "SUBSYSTEM="+s))) {
			t.Errorf("subsystem %s is not heard", s)
		}
	}
}

// FuzzConcerns compares with a reader that takes the message apart first.
func FuzzConcerns(f *testing.F) {
	f.Add([]byte(message("add@"+pciPath, "ACTION=add", "SUBSYSTEM=pci")))
	f.Add([]byte(message("add@"+pciPath, "SUBSYSTEM=block", "SUBSYSTEM=pci")))
	f.Add([]byte("add@/\x00\x00\x00SUBSYSTEM=net"))
	f.Add([]byte("libudev\x00\xfe\xed\xca\xfe\x28\x00"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, msg []byte) {
		fields := strings.Split(string(msg), "\x00")
		want := false
		if at := strings.Index(fields[0], "@/"); at > 0 && !strings.Contains(fields[0][:at], "@") {
			i := slices.IndexFunc(fields[1:], func(s string) bool { return strings.HasPrefix(s, "SUBSYSTEM=") })
			want = i >= 0 && slices.Contains(subsystems(), fields[1+i][len("SUBSYSTEM="):])
		}
		if got := concerns(msg); got != want {
			t.Errorf("%q: %v, want %v", msg, got, want)
		}
	})
}
