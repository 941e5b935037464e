package check_test

import (
	"os"
	"path/filepath"
	"testing"

	"kata-device-plugin/internal/check"
	"kata-device-plugin/internal/manifest"
)

// TestHealthy: of clusters in which everything is as it should be nothing is said, however many
// kinds of plugins they have.
func TestHealthy(t *testing.T) {
	files, err := filepath.Glob("testdata/healthy/*.yaml")
	must(t, err)
	if len(files) < 8 {
		t.Fatalf("found only %v", files)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			must(t, err)
			complete, o := options(string(text))
			r := check.Run(load(t, string(text), complete...), o)
			for _, f := range r.Findings {
				t.Errorf("%s %s: %s: %s %v", f.Severity, f.ID, f.Place, f.Message, f.Evidence)
			}
			if len(r.Passed) < 30 {
				t.Errorf("only %d checks have been made", len(r.Passed))
			}
		})
	}
}

// TestHealthyDeploy: what this project deploys is as the checks want it, all of it at once.
func TestHealthyDeploy(t *testing.T) {
	for _, dir := range []string{"kata-device-plugin", "nic-device-plugin", "kata-dra-driver", "device-exporter", "examples"} {
		set, err := manifest.Load([]string{"../../deploy/" + dir}, manifest.Options{})
		must(t, err)
		for _, f := range check.Run(set, check.Options{}).Findings {
			t.Errorf("%s: %s %s: %s", dir, f.Severity, f.ID, f.Message)
		}
	}
}
