package main

import (
	"encoding/json"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// plain is an index that says of images what the specification of indexes has always had for them. The
// library also writes an artifactType, which is the media type of the configuration. Tools that do not
// know that field write the index anew when they copy it, and then its digest is another than the one
// that was printed, by which people name the image.
type plain struct{ made }

// made is what the library makes. It has a method of the interface's own name, which a field would hide.
type made = v1.ImageIndex

// IndexManifest implements v1.ImageIndex.
func (p plain) IndexManifest() (*v1.IndexManifest, error) {
	manifest, err := p.made.IndexManifest()
	if err != nil {
		return nil, err
	}
	manifest = manifest.DeepCopy()
	for i := range manifest.Manifests {
		manifest.Manifests[i].ArtifactType = ""
	}
	return manifest, nil
}

// RawManifest implements v1.ImageIndex.
func (p plain) RawManifest() ([]byte, error) {
	manifest, err := p.IndexManifest()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("encode the index: %w", err)
	}
	return text, nil
}

// Digest implements v1.ImageIndex.
func (p plain) Digest() (v1.Hash, error) { return partial.Digest(p) }

// Size implements v1.ImageIndex.
func (p plain) Size() (int64, error) { return partial.Size(p) }
