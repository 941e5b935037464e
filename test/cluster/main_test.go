//go:build node

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"kata-device-plugin/test/peer"
)

// The resources and the plugin's DaemonSet.
const (
	gpu       = "nvidia.com/gpu"
	nvswitch  = "nvidia.com/nvswitch"
	system    = "kube-system"
	daemonSet = "kata-device-plugin"
)

// What `make e2e-cluster` has made before.
const (
	manifests = "../../dist/e2e-cluster.yaml"
	base      = "../../dist/kata-device-plugin.yaml"
	image     = "../../dist/kata-device-plugin.oci.tar"

	imported = "docker.io/library/kata-device-plugin:dev"
	upgrade  = "docker.io/library/kata-device-plugin:next"
)

// programs are what the machines run, made once for all tests.
var programs *peer.Programs

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Minute)
	defer cancel()
	for _, file := range []string{manifests, base, image} {
		if _, err := os.Stat(file); err != nil {
			return 1, fmt.Errorf("look for what is to be tested: %w; make e2e-cluster makes it", err)
		}
	}
	programs, err = peer.BuildCluster(ctx, os.Stderr)
	var missing *peer.MissingError
	switch {
	case errors.As(err, &missing) && os.Getenv("CI") == "":
		fmt.Println("SKIPPED: no test with a real cluster was run:", err)
		return 0, nil
	case err != nil:
		return 1, err
	}
	code = m.Run()
	return code, programs.Close()
}
