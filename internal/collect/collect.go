// Package collect takes a capture of the node that it runs on. It only reads: it opens no device
// node, asks no device plugin anything, and of kubelet only who has which device. It reads no
// Secrets and no process's environment.
//
// Of /sys it reads what a look at the node reads, because it is such a look that is noted down.
package collect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"kata-device-plugin/internal/capture"
	"kata-device-plugin/internal/host"
)

// Options say where to look. The zero value is the node itself, with kubelet's usual directory.
type Options struct {
	// Root is where the node's files are, "/" if empty.
	Root string
	// Kubelet is kubelet's root directory on the host, if it is another one.
	Kubelet string
	// KubeletVersion and Hostname are noted where the caller knows them better.
	KubeletVersion, Hostname string
	// Tool is noted too: the program with its version.
	Tool string
	// Time is now.
	Time time.Time
	// Links reads what netlink shows; nil where that is not to be had.
	Links func() (*host.Links, error)
}

// kubeletDir is where nearly every node has it. Its directory device-plugins is a constant of
// kubelet's, also where the rest is elsewhere.
const kubeletDir = "/var/lib/kubelet"

// How much is read and waited for. What is beyond is missing, with the reason.
const (
	maxFile   = 1 << 20
	maxRecord = 8 << 20 // of kubelet, with all pods of a node
	maxTotal  = 32 << 20
	maxNames  = 4096

	connectTime = time.Second
	answerTime  = 5 * time.Second
)

// node is the node while it is captured.
type node struct {
	Options
	c     *capture.Capture
	bytes int // that were read of files
	// labelled: SELinux is on, and files have labels that count.
	labelled bool
}

// Node captures the node. What it cannot read it leaves out, and says so in the capture. When
// ctx ends it returns what it has. The error is for what is no node at all.
func Node(ctx context.Context, o Options) (*capture.Capture, error) {
	o.Root, o.Kubelet = cmp.Or(o.Root, "/"), path.Clean(cmp.Or(o.Kubelet, kubeletDir))
	n := &node{Options: o}
	if info, err := os.Stat(n.real("/sys")); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("capture node: %s is no directory: want a node's root, with sys in it", n.real("/sys"))
	}
	n.c = capture.New(capture.Meta{
		Time: o.Time, Tool: o.Tool, Kubelet: o.KubeletVersion, KubeletDir: o.Kubelet,
		Hostname: cmp.Or(o.Hostname, n.kernel("/proc/sys/kernel/hostname")),
		Kernel:   n.kernel("/proc/sys/kernel/osrelease"), Boot: n.kernel("/proc/sys/kernel/random/boot_id"),
		Started: started([]byte(n.kernel("/proc/stat"))),
	})
	for _, step := range []struct {
		what string
		do   func(context.Context)
	}{
		{"/sys and /dev", n.hardware},
		{"whether SELinux is on", n.selinux},
		{"CDI specs", n.specs},
		{"sockets of device plugins", n.sockets},
		{"kubelet's record of devices", n.checkpoint},
		{"kubelet's answers", n.podResources},
		{"records of claims", n.claims},
		{"the container runtime's settings", n.runtime},
		{"kubelet's settings", n.kubeletConfig},
		{"Kata's settings", n.kata},
	} {
		if err := ctx.Err(); err != nil {
			n.c.Miss(step.what, fmt.Errorf("there was no time left: %w", err))
			continue
		}
		step.do(ctx)
	}
	capture.Mask(n.c)
	return n.c, nil
}

// real is where this process sees a path of the host.
func (n *node) real(name string) string { return filepath.Join(n.Root, name) }

// roots are host.Roots below the node's root.
func (n *node) roots() host.Roots { return host.Under(n.Root, "collect") }

// kernel reads a line of /proc, "" where there is none.
func (n *node) kernel(name string) string {
	data, err := os.ReadFile(n.real(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// miss notes what could not be read. That something does not exist is an answer.
func (n *node) miss(what string, err error) {
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		n.c.Miss(what, err)
	}
}
