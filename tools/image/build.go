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

	"kata-device-plugin/tools/sbom"
)

// probeName is the name under which the standard health probe is found in images that have it.
const probeName = "grpc_health_probe"

// spec is all that an image depends on.
type spec struct {
	Name, Tag, Version, Revision, Source, Description string

	Modules, Root    string            // the module cache and the directory of Go, of which the licences are
	Repository       string            // the sources, of which ours is
	Programs, Probes map[string]string // file by architecture
	Time             time.Time         // of everything in the image
}

// reference is the name under which a node finds an imported image: what kubelet makes of
// "kata-device-plugin:dev", which names no registry.
func (s spec) reference() string { return "docker.io/library/" + s.Name + ":" + s.Tag }

func (s spec) created() string { return s.Time.Format(time.RFC3339) }

// labels are for people and scanners. Where the code is published is up to those who publish it: without
// their word there is no source label.
func (s spec) labels() map[string]string {
	labels := map[string]string{
		"org.opencontainers.image.title":       s.Name,
		"org.opencontainers.image.description": s.Description,
		"org.opencontainers.image.version":     s.Version,
		"org.opencontainers.image.revision":    s.Revision,
		"org.opencontainers.image.source":      s.Source,
		"org.opencontainers.image.created":     s.created(),
		"org.opencontainers.image.licenses":    "Apache-2.0",
	}
	for key, value := range labels {
		if value == "" {
			delete(labels, key) // an empty label says less than none
		}
	}
	return labels
}

// build makes the index of one image for each platform, and the SBOM of each image.
func (s spec) build() (v1.ImageIndex, []contents, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var sboms []contents
	for _, arch := range s.platforms() {
		image, err := s.image(arch)
		if err != nil {
			return nil, nil, err
		}
		document, err := s.describe(arch)
		if err != nil {
			return nil, nil, fmt.Errorf("list the contents for %s: %w", arch, err)
		}
		referrer, err := s.refer(arch, document, image)
		if err != nil {
			return nil, nil, fmt.Errorf("attach the SBOM for %s: %w", arch, err)
		}
		sboms = append(sboms, contents{arch, document, referrer})
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
	}
	return plain{mutate.Annotations(index, s.labels()).(v1.ImageIndex)}, sboms, nil
}

// image makes the image of one platform. The probe is a layer of its own below the
// program's: it changes seldom, so an upgrade transfers the program alone. Programs that are
// not asked for their health have none. The licences of both are where scanners look for them.
func (s spec) image(arch string) (v1.Image, error) {
	var layers []mutate.Addendum
	for _, file := range []struct{ name, path string }{
		{probeName, s.Probes[arch]},
		{s.Name, s.Programs[arch]},
	} {
		if file.name == probeName && len(s.Probes) == 0 {
			continue
		}
		if file.path == "" {
			return nil, fmt.Errorf("no %s for %s", file.name, arch)
		}
		content, err := os.ReadFile(file.path)
		if err != nil {
			return nil, fmt.Errorf("read %s for %s: %w", file.name, arch, err)
		}
		if err := checkStatic(content, arch); err != nil {
			return nil, fmt.Errorf("check %s (%s for %s): %w", file.path, file.name, arch, err)
		}
		layer, err := s.layer(member{file.name, 0o555, content})
		if err != nil {
			return nil, err
		}
		layers = append(layers, s.added(layer, file.name))
	}
	licences, err := s.licences(arch)
	if err != nil {
		return nil, err
	}
	return s.assemble(arch, append(layers, licences))
}

// added is a layer with what is said of it.
func (s spec) added(layer v1.Layer, name string) mutate.Addendum {
	return mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: s.Time}, CreatedBy: "add /" + name}}
}

// licences is the layer with the terms of all that is in the image of one platform.
func (s spec) licences(arch string) (mutate.Addendum, error) {
	files := []string{s.Programs[arch]}
	if probe, ok := s.Probes[arch]; ok {
		files = append(files, probe)
	}
	texts, err := sbom.Licences(s.Repository, s.Modules, s.Root, files...)
	if err != nil {
		return mutate.Addendum{}, fmt.Errorf("collect the licences for %s: %w", arch, err)
	}
	var members []member
	for _, l := range texts {
		members = append(members, member{"licenses/" + l.Name, 0o444, l.Text})
	}
	layer, err := s.layer(members...)
	if err != nil {
		return mutate.Addendum{}, err
	}
	return s.added(layer, "licenses"), nil
}

// assemble makes an image of layers.
func (s spec) assemble(arch string, layers []mutate.Addendum) (v1.Image, error) {
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

// member is a file of a layer.
type member struct {
	name    string
	mode    int64
	content []byte
}

// layer holds files.
func (s spec) layer(files ...member) (v1.Layer, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, f := range files {
		header := tar.Header{
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
			Name: f.name, Size: int64(len(f.content)), Mode: f.mode, ModTime: s.Time,
		}
		if err := writeEntry(w, &header, f.content); err != nil {
			return nil, fmt.Errorf("archive %s: %w", f.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("archive a layer: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(buf.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
}
