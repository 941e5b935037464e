package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// TestReferrers looks for the SBOM of each platform's image as a registry does: an artifact whose
// subject is the image.
func TestReferrers(t *testing.T) {
	_, archive := build(t, 0)
	files := untar(t, archive)
	top := decode[v1.IndexManifest](t, files["index.json"])
	index := decode[v1.IndexManifest](t, blob(t, files, top.Manifests[0].Digest))
	for _, image := range index.Manifests {
		var found int
		for _, m := range top.Manifests[1:] {
			artifact := decode[v1.Manifest](t, blob(t, files, m.Digest))
			if len(m.Annotations) != 0 {
				t.Errorf("the artifact is listed with %v, an image's name among them would import it", m.Annotations)
			}
			if artifact.Subject == nil || artifact.Subject.Digest != image.Digest {
				continue
			}
			found++
			if artifact.Config.MediaType != "application/spdx+json" || len(artifact.Layers) != 1 ||
				artifact.Layers[0].MediaType != "application/spdx+json" || artifact.Subject.Size != image.Size {
				t.Errorf("the artifact is %+v", artifact)
			}
			document := string(blob(t, files, artifact.Layers[0].Digest))
			if want := "kata-device-plugin v1.2.3 " + image.Platform.String(); !strings.Contains(document, want) {
				t.Errorf("the document is not that of %s:\n%s", want, document)
			}
		}
		if found != 1 {
			t.Errorf("%d artifacts are about the image for %s", found, image.Platform)
		}
	}
}

func TestSourceIsSaid(t *testing.T) {
	_, archive := build(t, 0, "-source", "https://example.com/code")
	files := untar(t, archive)
	index := decode[v1.IndexManifest](t, blob(t, files, decode[v1.IndexManifest](t, files["index.json"]).Manifests[0].Digest))
	if got := index.Annotations["org.opencontainers.image.source"]; got != "https://example.com/code" {
		t.Errorf("the source is %q", got)
	}
}

// TestWithoutProbe makes the image of a program for people.
func TestWithoutProbe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kubectl-device")
	if err := os.WriteFile(file, program(t, "amd64"), 0o700); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "image.tar")
	args := []string{"-name", "kubectl-device", "-repository", "../..", "-goroot", goroot(t), "-o", out, "-program", "amd64=" + file}
	if err := run(args, "", t.Output(), t.Output()); err != nil {
		t.Fatal(err)
	}
	files := untar(t, read(t, out))
	index := decode[v1.IndexManifest](t, blob(t, files, decode[v1.IndexManifest](t, files["index.json"]).Manifests[0].Digest))
	manifest := decode[v1.Manifest](t, blob(t, files, index.Manifests[0].Digest))
	if len(manifest.Layers) != 2 {
		t.Fatalf("the image has %d layers, want the program's and that of the licences", len(manifest.Layers))
	}
	if f := unlayer(t, blob(t, files, manifest.Layers[0].Digest)); len(f) != 1 || f[0].Name != "kubectl-device" {
		t.Errorf("the layer holds %v", f)
	}
}

// TestMerge packs two archives into one, which has all that is in them, what is shared once.
func TestMerge(t *testing.T) {
	dir := t.TempDir()
	var files []string
	var indexes []v1.IndexManifest
	blobs := map[string][]byte{}
	for _, name := range []string{"kata-device-plugin", "nic-device-plugin"} {
		_, archive := build(t, 0, "-name", name)
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, archive, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		maps.Copy(blobs, untar(t, archive))
		indexes = append(indexes, decode[v1.IndexManifest](t, blobs["index.json"]))
	}
	out := filepath.Join(dir, "all.tar")
	args := append([]string{"-merge", "-o", out}, files...)
	for range 2 {
		if err := run(args, "1700000000", t.Output(), t.Output()); err != nil {
			t.Fatal(err)
		}
		merged := read(t, out)
		again := untar(t, merged)
		if len(again) != len(blobs) {
			t.Errorf("it has %d files, want %d", len(again), len(blobs))
		}
		for name, content := range blobs {
			if name != "index.json" && !bytes.Equal(again[name], content) {
				t.Errorf("%s is another", name)
			}
		}
		var digests []v1.Hash
		for _, m := range decode[v1.IndexManifest](t, again["index.json"]).Manifests {
			digests = append(digests, m.Digest)
		}
		var want []v1.Hash
		for _, index := range indexes {
			for _, m := range index.Manifests {
				want = append(want, m.Digest)
			}
		}
		if !slices.Equal(digests, want) {
			t.Errorf("the index lists %v, want %v", digests, want)
		}
		if err := os.WriteFile(filepath.Join(dir, "first"), merged, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := run([]string{"-merge", "-o", out, filepath.Join(dir, "absent")}, "", t.Output(), t.Output()); err == nil {
		t.Error("an archive that does not exist was merged")
	}
	if err := run(append([]string{"-merge", "-o", out}, out), "1700000000", t.Output(), t.Output()); err != nil || !bytes.Equal(read(t, out), read(t, filepath.Join(dir, "first"))) {
		t.Errorf("the merger of one archive is another archive: %v", err)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
