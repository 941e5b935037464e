package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// executable is the smallest file that reads as an executable of a machine, with a tail
// that tells it from others.
func executable(t *testing.T, machine elf.Machine, progs []elf.Prog64, tail string) []byte {
	t.Helper()
	var buf bytes.Buffer
	header := elf.Header64{
		Ident:   [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:    uint16(elf.ET_EXEC),
		Machine: uint16(machine),
		Version: uint32(elf.EV_CURRENT),
		Ehsize:  64, Phoff: 64, Phentsize: 56, Phnum: uint16(len(progs)),
	}
	for _, part := range []any{header, progs} {
		if err := binary.Write(&buf, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	buf.WriteString(tail)
	return buf.Bytes()
}

// goroot is the directory of Go.
func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// program is a real program for an architecture. That it was built by Go is written in it.
func program(t *testing.T, arch string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", file, "./testdata/program")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the program for %s: %v\n%s", arch, err, out)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// build runs the tool on fresh files in a fresh directory whose times differ from run to
// run, and returns what it printed and the archive.
func build(t *testing.T, age time.Duration, extra ...string) (string, []byte) {
	t.Helper()
	dir := t.TempDir()
	args := []string{
		"-modules", dir, "-goroot", goroot(t), "-repository", "../..", "-name", "kata-device-plugin", "-version", "v1.2.3", "-revision", "abc",
		"-description", "announces devices", "-o", filepath.Join(dir, "out", "image.tar"),
	}
	// arm64 first: the order of the flags must not matter either.
	for _, arch := range []string{"arm64", "amd64"} {
		for _, kind := range []string{"program", "probe"} {
			file := filepath.Join(dir, kind+"-"+arch)
			content := append(program(t, arch), kind+" for "+arch...)
			if err := os.WriteFile(file, content, 0o700); err != nil {
				t.Fatal(err)
			}
			then := time.Now().Add(-age)
			if err := os.Chtimes(file, then, then); err != nil {
				t.Fatal(err)
			}
			args = append(args, "-"+kind, arch+"="+file)
		}
	}
	var stdout bytes.Buffer
	if err := run(append(args, extra...), "1700000000", &stdout, t.Output()); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(filepath.Join(dir, "out", "image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	digest, _, _ := strings.Cut(stdout.String(), " ")
	return digest, archive
}

func TestSameInputSameBytes(t *testing.T) {
	digest1, archive1 := build(t, 0)
	digest2, archive2 := build(t, 1000*time.Hour)
	if digest1 != digest2 || !bytes.Equal(archive1, archive2) {
		t.Errorf("two builds of the same files differ: %s and %s, %d and %d bytes", digest1, digest2, len(archive1), len(archive2))
	}
	if digest3, _ := build(t, 0, "-version", "v9"); digest3 == digest1 {
		t.Error("another version has the same digest")
	}
}

func TestArchiveIsAnOCILayout(t *testing.T) {
	digest, archive := build(t, 0)
	files := untar(t, archive)
	if got := string(files["oci-layout"]); !strings.Contains(got, `"imageLayoutVersion": "1.0.0"`) {
		t.Errorf("oci-layout is %q", got)
	}
	top := decode[v1.IndexManifest](t, files["index.json"])
	if len(top.Manifests) != 3 || top.Manifests[0].Digest.String() != digest {
		t.Fatalf("index.json lists %v, want the digest that was printed, %s, and two SBOMs", top.Manifests, digest)
	}
	for _, key := range []string{"io.containerd.image.name", "org.opencontainers.image.ref.name"} {
		if got := top.Manifests[0].Annotations[key]; got != "docker.io/library/kata-device-plugin:dev" {
			t.Errorf("annotation %s is %q", key, got)
		}
	}
	index := decode[v1.IndexManifest](t, blob(t, files, top.Manifests[0].Digest))
	var platforms []string
	for _, m := range index.Manifests {
		platforms = append(platforms, m.Platform.String())
		if m.ArtifactType != "" {
			t.Errorf("the index says %q of an image, which skopeo leaves out when it copies", m.ArtifactType)
		}
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) {
		t.Errorf("the index is for %v, want %v", platforms, want)
	}
	for name := range files {
		if hash, ok := strings.CutPrefix(name, "blobs/sha256/"); ok {
			if got, _, _ := v1.SHA256(bytes.NewReader(files[name])); got.Hex != hash {
				t.Errorf("%s holds %s", name, got)
			}
		}
	}
}

func TestEveryPlatformHoldsTwoProgramsAndRunsOne(t *testing.T) {
	for _, program := range []string{"kata-device-plugin", "nic-device-plugin"} {
		_, archive := build(t, 0, "-name", program)
		files := untar(t, archive)
		index := decode[v1.IndexManifest](t, blob(t, files, decode[v1.IndexManifest](t, files["index.json"]).Manifests[0].Digest))
		for _, m := range index.Manifests {
			t.Run(program+"/"+m.Platform.String(), func(t *testing.T) {
				manifest := decode[v1.Manifest](t, blob(t, files, m.Digest))
				checkConfig(t, decode[v1.ConfigFile](t, blob(t, files, manifest.Config.Digest)), program, m.Platform.Architecture)
				holds := map[string]string{}
				last := len(manifest.Layers) - 1
				checkLicences(t, unlayer(t, blob(t, files, manifest.Layers[last].Digest)))
				for _, layer := range manifest.Layers[:last] {
					for _, f := range unlayer(t, blob(t, files, layer.Digest)) {
						holds[f.Name] = string(f.content[bytes.LastIndexByte(f.content, 0)+1:])
						if f.Mode != 0o555 || f.Uid != 0 || f.Gid != 0 || f.ModTime.Unix() != 1700000000 {
							t.Errorf("%s has mode %o, owner %d:%d, time %v", f.Name, f.Mode, f.Uid, f.Gid, f.ModTime)
						}
					}
				}
				arch := m.Platform.Architecture
				if len(holds) != 2 || holds[program] != "program for "+arch || holds["grpc_health_probe"] != "probe for "+arch {
					t.Errorf("the image holds %q, want the program and the probe", holds)
				}
			})
		}
	}
}

// checkLicences: whoever gives an image away gives with it what the licences want.
func checkLicences(t *testing.T, files []entry) {
	t.Helper()
	var names []string
	for _, f := range files {
		names = append(names, f.Name)
		if f.Mode != 0o444 || f.Uid != 0 || f.Gid != 0 || f.ModTime.Unix() != 1700000000 || len(f.content) == 0 {
			t.Errorf("%s has mode %o, owner %d:%d, time %v, %d bytes", f.Name, f.Mode, f.Uid, f.Gid, f.ModTime, len(f.content))
		}
	}
	if want := []string{"licenses/LICENSE", "licenses/LICENSE.pci.ids", "licenses/LICENSE.third-party"}; !slices.Equal(names, want) {
		t.Errorf("the image has the licences %q, want %q", names, want)
	}
	// The program and the probe are both of Go, and each says so.
	if n := strings.Count(string(files[len(files)-1].content), "==== Go go1."); n != 2 {
		t.Errorf("the licence of Go is there %d times, want it for the program and for the probe", n)
	}
}

func checkConfig(t *testing.T, c v1.ConfigFile, program, arch string) {
	t.Helper()
	if c.OS != "linux" || c.Architecture != arch || c.Created.Unix() != 1700000000 {
		t.Errorf("config is for %s/%s of %v", c.OS, c.Architecture, c.Created)
	}
	if want := []string{"/" + program}; !slices.Equal(c.Config.Entrypoint, want) || len(c.Config.Cmd) != 0 {
		t.Errorf("it runs %q %q, want %q", c.Config.Entrypoint, c.Config.Cmd, want)
	}
	if c.Config.User != "0:0" || len(c.Config.Env) != 0 || len(c.Config.ExposedPorts) != 0 || len(c.Config.Volumes) != 0 {
		t.Errorf("user %q, env %q, ports %v, volumes %v", c.Config.User, c.Config.Env, c.Config.ExposedPorts, c.Config.Volumes)
	}
	for key, want := range map[string]string{
		"title": program, "description": "announces devices", "version": "v1.2.3", "revision": "abc", "licenses": "Apache-2.0",
		"created": "2023-11-14T22:13:20Z",
	} {
		if got := c.Config.Labels["org.opencontainers.image."+key]; got != want {
			t.Errorf("label %s is %q, want %q", key, got, want)
		}
	}
	if source, ok := c.Config.Labels["org.opencontainers.image.source"]; ok {
		t.Errorf("there is a source label: %q", source)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", executable(t, elf.EM_X86_64, nil, "program"))
	dynamic := file("dynamic", executable(t, elf.EM_X86_64, []elf.Prog64{{Type: uint32(elf.PT_INTERP)}}, ""))
	script := file("script", []byte("#!/bin/sh\n"))
	for _, test := range []struct {
		name, epoch string
		args        []string
		want        string
	}{
		{"no program", "", []string{"-probe", "amd64=" + good}, "at least one -program"},
		{"no probe", "", []string{"-program", "amd64=" + good, "-probe", "arm64=" + good}, "no grpc_health_probe for amd64"},
		{"not of Go", "", []string{"-program", "amd64=" + good, "-probe", "amd64=" + good}, "read the build information"},
		{"nothing to merge", "", []string{"-merge"}, "at least one archive"},
		{"unknown architecture", "", []string{"-program", "s390x=" + good}, `architecture "s390x" is not one of amd64, arm64`},
		{"twice", "", []string{"-program", "amd64=" + good, "-program", "amd64=" + good}, "given twice"},
		{"other machine", "", []string{"-program", "arm64=" + good, "-probe", "arm64=" + good}, "it is for EM_X86_64, not for EM_AARCH64"},
		{"dynamic", "", []string{"-program", "amd64=" + dynamic, "-probe", "amd64=" + good}, "dynamically linked"},
		{"script", "", []string{"-program", "amd64=" + script, "-probe", "amd64=" + good}, "read it as an ELF executable"},
		{"epoch", "yesterday", []string{"-program", "amd64=" + good, "-probe", "amd64=" + good}, "SOURCE_DATE_EPOCH"},
	} {
		t.Run(test.name, func(t *testing.T) {
			args := append([]string{"-name", "x", "-repository", "../..", "-goroot", goroot(t), "-o", filepath.Join(dir, "out.tar")}, test.args...)
			err := run(args, test.epoch, io.Discard, io.Discard)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
			if _, err := os.Stat(filepath.Join(dir, "out.tar")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is an archive all the same: %v", err)
			}
		})
	}
}

type entry struct {
	*tar.Header
	content []byte
}

func entries(t *testing.T, r io.Reader) []entry {
	t.Helper()
	var list []entry
	for tr := tar.NewReader(r); ; {
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, entry{header, content})
	}
}

func untar(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, e := range entries(t, bytes.NewReader(archive)) {
		if e.Typeflag == tar.TypeReg {
			files[e.Name] = e.content
		}
	}
	return files
}

func unlayer(t *testing.T, compressed []byte) []entry {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		t.Fatal(err)
	}
	return entries(t, r)
}

func blob(t *testing.T, files map[string][]byte, digest v1.Hash) []byte {
	t.Helper()
	content, ok := files["blobs/sha256/"+digest.Hex]
	if !ok {
		t.Fatalf("the archive has no blob %s", digest)
	}
	return content
}

func decode[T any](t *testing.T, content []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(content, &v); err != nil {
		t.Fatalf("decode %q: %v", content, err)
	}
	return v
}
