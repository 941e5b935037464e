package main

import (
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"kata-device-plugin/tools/sbom"
)

// contents is the SBOM of the image of one platform.
type contents struct {
	arch     string
	document []byte
	referrer v1.Image
}

// describe lists what the image of a platform is made of.
func (s spec) describe(arch string) ([]byte, error) {
	files := []string{s.Programs[arch]}
	if probe, ok := s.Probes[arch]; ok {
		files = append(files, probe)
	}
	return sbom.Document(sbom.Subject{
		Name: s.Name, Version: s.Version, Platform: "linux/" + arch, Purpose: "CONTAINER",
		Files: files, Modules: s.Modules, Time: s.Time,
	})
}

// refer makes the artifact that holds an SBOM, and names the image as what it is about. A registry
// lists it among the image's referrers.
func (s spec) refer(arch string, document []byte, image v1.Image) (v1.Image, error) {
	artifact := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), sbom.MediaType)
	artifact, err := mutate.Append(artifact, mutate.Addendum{
		Layer: static.NewLayer(document, sbom.MediaType),
		Annotations: map[string]string{
			"org.opencontainers.image.title": s.Name + "-linux-" + arch + ".spdx.json",
		},
	})
	if err != nil {
		return nil, fmt.Errorf("put the SBOM into an artifact: %w", err)
	}
	subject, err := partial.Descriptor(image)
	if err != nil {
		return nil, fmt.Errorf("describe the image that the SBOM is about: %w", err)
	}
	artifact = mutate.Annotations(artifact, map[string]string{
		"org.opencontainers.image.created": s.created(),
	}).(v1.Image)
	return mutate.Subject(artifact, *subject).(v1.Image), nil
}
