package main

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// plugin is what krew knows of a plugin. Its validation refuses other fields.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string     `json:"version"`
		Homepage         string     `json:"homepage"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Caveats          string     `json:"caveats"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`
}

type platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Files  []struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"files"`
	Bin string `json:"bin"`
}

// TestKrew holds the entry of a release against what krew wants: a name that may be a plugin's, a version
// with a v, and for each system an archive of the release with its checksum and a program in it.
func TestKrew(t *testing.T) {
	dir := built(t)
	out, err := releaseOf(t, dir)
	must(t, err)
	var m plugin
	text := read(t, filepath.Join(out, "krew-device.yaml"))
	must(t, yaml.UnmarshalStrict([]byte(text), &m))
	if left := regexp.MustCompile(`SHA256_|BASE|VERSION`).FindString(text); left != "" {
		t.Errorf("%s was left in it", left)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" {
		t.Errorf("it is a %s of %s", m.Kind, m.APIVersion)
	}
	if m.Metadata.Name != "device" || m.Spec.Version != "v1.2.3" || m.Spec.Homepage != "https://example.com/v1.2.3" {
		t.Errorf("%q has the version %q and is at %s", m.Metadata.Name, m.Spec.Version, m.Spec.Homepage)
	}
	if s := m.Spec.ShortDescription; s == "" || len(s) > 80 || strings.HasSuffix(s, ".") || strings.Contains(s, "\n") {
		t.Errorf("the short description is %q", s)
	}
	var systems []string
	for _, p := range m.Spec.Platforms {
		systems = append(systems, p.Selector.MatchLabels["os"]+"-"+p.Selector.MatchLabels["arch"])
		p.check(t, out, systems[len(systems)-1])
	}
	slices.Sort(systems)
	want := []string{"darwin-amd64", "darwin-arm64", "linux-amd64", "linux-arm64", "windows-amd64", "windows-arm64"}
	if !slices.Equal(systems, want) {
		t.Errorf("it is for %q, want %q", systems, want)
	}
}

// check holds a platform against the archive of a system in a release.
func (p platform) check(t *testing.T, release, system string) {
	t.Helper()
	program, ending := "kubectl-device", ".tar.gz"
	if strings.HasPrefix(system, "windows-") {
		program, ending = "kubectl-device.exe", ".zip"
	}
	archive := "kubectl-device-" + system + ending
	if p.Bin != program || p.URI != "https://example.com/v1.2.3/"+archive {
		t.Errorf("%s is %s out of %s", system, p.Bin, p.URI)
	}
	if want := sum(read(t, filepath.Join(release, archive))); p.SHA256 != want {
		t.Errorf("%s has the checksum %q, want %q", system, p.SHA256, want)
	}
	_, contents := members(t, filepath.Join(release, archive))
	installed := map[string]bool{}
	for _, f := range p.Files {
		if _, ok := contents[f.From]; !ok {
			t.Errorf("%s installs %s, which is not in the archive", system, f.From)
		}
		installed[path.Join(f.To, path.Base(f.From))] = true
	}
	if !installed[p.Bin] || !installed["LICENSE"] {
		t.Errorf("%s installs %v", system, installed)
	}
}

// TestNoKrew: without the address of the archives nobody could get them.
func TestNoKrew(t *testing.T) {
	out, err := releaseOf(t, built(t), "-base", "")
	must(t, err)
	if _, err := os.Stat(filepath.Join(out, "krew-device.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a krew manifest without an address for it: %v", err)
	}
}
