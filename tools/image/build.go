package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// probeName is the name under which the standard health probe is found in images that have it.
const probeName = "grpc_health_probe"

// spec is all that an image depends on.
type spec struct {
	Name, Tag, Version, Revision, Description string

	Programs, Probes map[string]string // file by architecture
	Time             time.Time         // of everything in the image
}

// reference is the name under which a node finds an imported image: what kubelet makes of
// "kata-device-plugin:dev", which names no registry.
func (s spec) reference() string { return "docker.io/library/" + s.Name + ":" + s.Tag }

// labels are for people and scanners. There is no source label: where the code is
// published is up to those who publish it.
func (s spec) labels() map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       s.Name,
		"org.opencontainers.image.description": s.Description,
		"org.opencontainers.image.version":     s.Version,
		"org.opencontainers.image.revision":    s.Revision,
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	for key, value := range labels {
		if value == "" {
			delete(labels, key) // an empty label says less than none
		}
	}
	return labels
}

// build makes the index of one image for each platform.
func (s spec) build() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range s.platforms() {
		image, err := s.image(arch)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return mutate.Annotations(index, s.labels()).(v1.ImageIndex), nil
}

// image makes the image of one platform. The probe is a layer of its own below the
// program's: it changes seldom, so an upgrade transfers the program alone.
func (s spec) image(arch string) (v1.Image, error) {
	var layers []mutate.Addendum
	for _, file := range []struct{ name, path string }{
		{probeName, s.Probes[arch]},
		{s.Name, s.Programs[arch]},
	} {
		if file.path == "" {
			return nil, fmt.Errorf("no %s for %s", file.name, arch)
		}
		layer, err := s.layer(file.name, file.path, arch)
		if err != nil {
			return nil, err
		}
		layers = append(layers, mutate.Addendum{
			Layer:   layer,
			History: v1.History{Created: v1.Time{Time: s.Time}, CreatedBy: "add /" + file.name},
		})
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(image, layers...)
	if err != nil {
		return nil, fmt.Errorf("add the layers for %s: %w", arch, err)
	}
	layered, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("read back the configuration for %s: %w", arch, err)
	}
	image, err = mutate.ConfigFile(image, s.config(*layered, arch))
	if err != nil {
		return nil, fmt.Errorf("set the configuration for %s: %w", arch, err)
	}
	return mutate.Annotations(image, s.labels()).(v1.Image), nil
}

// layer holds one executable in the root directory.
func (s spec) layer(name, path, arch string) (v1.Layer, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s for %s: %w", name, arch, err)
	}
	if err := checkStatic(content, arch); err != nil {
		return nil, fmt.Errorf("check %s (%s for %s): %w", path, name, arch, err)
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	header := tar.Header{
		Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		Name: name, Size: int64(len(content)), Mode: 0o555, ModTime: s.Time,
	}
	if err := writeEntry(w, &header, content); err != nil {
		return nil, fmt.Errorf("archive %s: %w", path, err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("archive %s: %w", path, err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
