//go:build node

package live

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"kata-device-plugin/test/peer"
)

// agents are the programs that the chart installs.
func agents() []string {
	return []string{"kata-device-plugin", "nic-device-plugin", "kata-dra-driver", "device-exporter"}
}

// archive is a program's image, which `make e2e-chart` has made before.
func archive(program string) string { return "../../../dist/" + program + ".oci.tar" }

// programs are what the machines run, made once for all tests.
var programs *peer.Programs

func TestMain(m *testing.M) { os.Exit(peer.Main(m, build, &programs)) }

// build complains early about what is not made here.
func build(ctx context.Context, progress io.Writer) (*peer.Programs, error) {
	files := []string{command}
	for _, program := range agents() {
		files = append(files, archive(program))
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("look for what is to be tested: %w; make e2e-chart makes it", err)
		}
	}
	return peer.BuildCluster(ctx, progress)
}
