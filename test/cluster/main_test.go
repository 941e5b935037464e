//go:build node

package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"kata-device-plugin/test/peer"
)

// The resources, and the DaemonSets of the plugin and of the DRA driver.
const (
	gpu       = "nvidia.com/gpu"
	nvswitch  = "nvidia.com/nvswitch"
	system    = "kube-system"
	daemonSet = "kata-device-plugin"

	draDaemonSet = "kata-dra-driver"
	draDriver    = "vfio.katacontainers.io"
)

// What `make e2e-cluster` has made before.
const (
	manifests = "../../dist/e2e-cluster.yaml"
	base      = "../../dist/kata-device-plugin.yaml"

	draManifests = "../../dist/e2e-cluster-dra.yaml"
	draBase      = "../../dist/kata-dra-driver.yaml"
)

// archive is a program's image.
func archive(program string) string { return "../../dist/" + program + ".oci.tar" }

// programs are what the machines run, made once for all tests.
var programs *peer.Programs

func TestMain(m *testing.M) { os.Exit(peer.Main(m, build, &programs)) }

// build complains early about what is not made here.
func build(ctx context.Context, progress io.Writer) (*peer.Programs, error) {
	for _, file := range []string{manifests, base, archive(daemonSet), draManifests, draBase, archive(draDaemonSet)} {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("look for what is to be tested: %w; make e2e-cluster makes it", err)
		}
	}
	return peer.BuildCluster(ctx, progress)
}
