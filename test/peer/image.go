package peer

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// The images of a node. Nothing is pulled: pods say imagePullPolicy Never.
const (
	PauseImage   = "peer.test/pause:1"   // what holds a pod's namespaces
	BusyboxImage = "peer.test/busybox:1" // a shell and the usual tools
)

// applets are the names by which an image's busybox is called.
func applets() []string {
	return []string{"cat", "dd", "echo", "env", "grep", "id", "ip", "ls", "mount", "sh", "sleep", "stat", "true", "wc"}
}

// entry is a file of a tar archive.
type entry struct {
	name, link string
	mode       int64
	data       []byte
}

func archive(entries []entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), Typeflag: tar.TypeReg, Linkname: e.link}
		switch {
		case e.link != "":
			h.Typeflag = tar.TypeSymlink
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("archive %s: %w", e.name, err)
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, fmt.Errorf("archive %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	return b.Bytes(), nil
}

// layer is the root of both images.
func layer(busybox string) ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, fmt.Errorf("read the image's program: %w", err)
	}
	entries := []entry{{name: "bin/", mode: 0o755}, {name: "bin/busybox", mode: 0o755, data: program}}
	for _, d := range []string{"dev/", "etc/", "proc/", "sys/", "tmp/"} {
		entries = append(entries, entry{name: d, mode: 0o755})
	}
	for _, a := range applets() {
		entries = append(entries, entry{name: "bin/" + a, link: "busybox", mode: 0o777})
	}
	entries = append(entries, entry{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/bin/sh\n")})
	return archive(entries)
}

// blobs are the content of an OCI image layout.
type blobs []entry

// add files a blob and describes it.
func (b *blobs) add(mediaType string, data []byte) map[string]any {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	*b = append(*b, entry{name: "blobs/sha256/" + digest, mode: 0o644, data: data})
	return map[string]any{"mediaType": mediaType, "digest": "sha256:" + digest, "size": len(data)}
}

// images writes both images as one OCI archive, which containerd imports.
func images(busybox, to string) error {
	root, err := layer(busybox)
	if err != nil {
		return err
	}
	var all blobs
	const oci = "application/vnd.oci.image."
	rootfs := all.add(oci+"layer.v1.tar", root)
	var manifests []any
	for name, entrypoint := range map[string][]string{PauseImage: {"/bin/sleep", "2147483647"}, BusyboxImage: {"/bin/sh"}} {
		config, err1 := json.Marshal(map[string]any{
			"os": "linux", "architecture": runtime.GOARCH,
			"config": map[string]any{"Entrypoint": entrypoint, "Env": []string{"PATH=/bin"}},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []any{rootfs["digest"]}},
		})
		manifest, err2 := json.Marshal(map[string]any{
			"schemaVersion": 2, "mediaType": oci + "manifest.v1+json",
			"config": all.add(oci+"config.v1+json", config), "layers": []any{rootfs},
		})
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("make image %s: %w", name, err)
		}
		m := all.add(oci+"manifest.v1+json", manifest)
		m["platform"] = map[string]string{"os": "linux", "architecture": runtime.GOARCH}
		m["annotations"] = map[string]string{"io.containerd.image.name": name}
		manifests = append(manifests, m)
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": oci + "index.v1+json", "manifests": manifests})
	if err != nil {
		return fmt.Errorf("make the images' index: %w", err)
	}
	all = append(all, entry{name: "index.json", mode: 0o644, data: index},
		entry{name: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}`)})
	data, err := archive(all)
	if err == nil {
		err = os.WriteFile(to, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(to), err)
	}
	return nil
}
