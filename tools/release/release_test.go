package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const epoch = "1700000000"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(content), 0o600))
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	return string(content)
}

// built is a repository with what a build leaves in it. The programs are small ones, and those for other
// systems are Linux's as well: what they are made of can be read from them.
func built(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "hello", "go.mod"), "module hello\n\ngo 1.26\n")
	write(t, filepath.Join(dir, "hello", "main.go"), "package main\n\nfunc main() {}\n")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "program"), ".")
	cmd.Dir, cmd.Env = filepath.Join(dir, "hello"), append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	program := read(t, filepath.Join(dir, "program"))
	for _, name := range []string{"kata-device-plugin", "kubectl-device"} {
		write(t, filepath.Join(dir, "cmd", name, "main.go"), "package main\n")
		write(t, filepath.Join(dir, "dist", name+".oci.tar"), "the image of "+name)
		for _, system := range systems() {
			write(t, filepath.Join(dir, "dist", system, name), program)
			write(t, filepath.Join(dir, "dist", name+"-"+system+".spdx.json"), "the SBOM of the image")
		}
	}
	for file, content := range map[string]string{
		"dist/darwin-amd64/kubectl-device": program, "dist/darwin-arm64/kubectl-device": program,
		"dist/windows-amd64/kubectl-device.exe": program, "dist/windows-arm64/kubectl-device.exe": program,
		"dist/images.oci.tar":                      "all images",
		"dist/kata-device-plugin.yaml":             "spec:\n  image: kata-device-plugin:dev\n",
		"dist/man/kubectl-device.1":                "the manual",
		"dist/completions/kubectl_complete-device": "#!/bin/sh\n",
		"dist/renamed.oci.tar":                     "of an older build",
		"dist/linux-amd64/renamed":                 "of an older build",
		"deploy/kata-device-plugin/daemonset.yaml": "",
		"internal/pciids/LICENSE.pci.ids":          "the licence of the names",
		"LICENSE":                                  "our licence",
		"go/LICENSE":                               "the licence of Go",
		"charts/passthrough/.helmignore":           "# why\nREADME.in\n",
		"charts/passthrough/Chart.yaml":            "name: passthrough\nversion: 0.1.0\nappVersion: dev\n",
		"charts/passthrough/AAA":                   "before Chart.yaml",
		"charts/passthrough/README.in":             "left out",
		"charts/passthrough/templates/pod.yaml":    "kind: Pod\n",
		"tools/krew/device.yaml":                   read(t, "../krew/device.yaml"),
	} {
		write(t, filepath.Join(dir, filepath.FromSlash(file)), content)
	}
	return dir
}

// releaseOf runs the tool on a repository, and returns the directory of the release.
func releaseOf(t *testing.T, dir string, extra ...string) (string, error) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "release")
	args := []string{
		"-version", "v1.2.3", "-base", "https://example.com/v1.2.3/", "-modules", dir, "-goroot", filepath.Join(dir, "go"),
		"-repository", dir, "-in", filepath.Join(dir, "dist"), "-out", out, "-system", "darwin-amd64", "-system", "darwin-arm64",
		"-system", "windows-amd64", "-system", "windows-arm64",
	}
	return out, run(append(args, extra...), epoch, t.Output())
}

// tree returns the files of a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, entry := range entries {
		files[entry.Name()] = read(t, filepath.Join(dir, entry.Name()))
	}
	return files
}

func TestRelease(t *testing.T) {
	dir := built(t)
	out, err := releaseOf(t, dir)
	must(t, err)
	files := tree(t, out)
	want := []string{
		"SHA256SUMS", "images.oci.tar",
		"kata-device-plugin-linux-amd64.spdx.json", "kata-device-plugin-linux-amd64.tar.gz", "kata-device-plugin-linux-amd64.tar.gz.spdx.json",
		"kata-device-plugin-linux-arm64.spdx.json", "kata-device-plugin-linux-arm64.tar.gz", "kata-device-plugin-linux-arm64.tar.gz.spdx.json",
		"kata-device-plugin.oci.tar", "kata-device-plugin.yaml", "krew-device.yaml",
		"kubectl-device-darwin-amd64.tar.gz", "kubectl-device-darwin-amd64.tar.gz.spdx.json",
		"kubectl-device-darwin-arm64.tar.gz", "kubectl-device-darwin-arm64.tar.gz.spdx.json",
		"kubectl-device-linux-amd64.spdx.json", "kubectl-device-linux-amd64.tar.gz", "kubectl-device-linux-amd64.tar.gz.spdx.json",
		"kubectl-device-linux-arm64.spdx.json", "kubectl-device-linux-arm64.tar.gz", "kubectl-device-linux-arm64.tar.gz.spdx.json",
		"kubectl-device-windows-amd64.zip", "kubectl-device-windows-amd64.zip.spdx.json",
		"kubectl-device-windows-arm64.zip", "kubectl-device-windows-arm64.zip.spdx.json",
		"kubectl-device.oci.tar", "passthrough-1.2.3.tgz",
	}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("the release has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var sums strings.Builder
	for _, name := range want[1:] {
		sums.WriteString(sum(files[name]) + "  " + name + "\n")
	}
	if got := files["SHA256SUMS"]; got != sums.String() {
		t.Errorf("the checksums are\n%swant\n%s", got, sums.String())
	}
	if got, want := files["kata-device-plugin.yaml"], "spec:\n  image: kata-device-plugin:v1.2.3\n"; got != want {
		t.Errorf("the manifest is %q, want %q", got, want)
	}
	again, err := releaseOf(t, dir)
	must(t, err)
	if !maps.Equal(files, tree(t, again)) {
		t.Error("the second release of the same files is another")
	}
}

func sum(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func TestArchives(t *testing.T) {
	dir := built(t)
	out, err := releaseOf(t, dir)
	must(t, err)
	licences := []string{"LICENSE 644", "LICENSE.pci.ids 644", "LICENSE.third-party 644"}
	people := append(slices.Clone(licences), "man/kubectl-device.1 644", "completions/kubectl_complete-device 755")
	for file, want := range map[string][]string{
		"kata-device-plugin-linux-arm64.tar.gz": append([]string{"kata-device-plugin 755"}, licences...),
		"kubectl-device-darwin-arm64.tar.gz":    append([]string{"kubectl-device 755"}, people...),
		"kubectl-device-windows-amd64.zip":      append([]string{"kubectl-device.exe 755"}, people...),
		"passthrough-1.2.3.tgz":                 {"passthrough/Chart.yaml 644", "passthrough/AAA 644", "passthrough/templates/pod.yaml 644"},
	} {
		got, contents := members(t, filepath.Join(out, file))
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", file, got, want)
		}
		if chart, ok := contents["passthrough/Chart.yaml"]; ok && chart != "name: passthrough\nversion: 1.2.3\nappVersion: v1.2.3\n" {
			t.Errorf("the chart says %q", chart)
		}
		if notices, ok := contents["LICENSE.third-party"]; ok && !strings.Contains(notices, "the licence of Go") {
			t.Errorf("the licences in %s are %q", file, notices)
		}
	}
}

// members lists what is in an archive, with the permissions in octal, and what is in each.
func members(t *testing.T, file string) ([]string, map[string]string) {
	t.Helper()
	var list []string
	contents := map[string]string{}
	add := func(name string, mode int64, r io.Reader) {
		content, err := io.ReadAll(r)
		must(t, err)
		list = append(list, name+" "+map[int64]string{0o644: "644", 0o755: "755"}[mode])
		contents[name] = string(content)
	}
	if strings.HasSuffix(file, ".zip") {
		r, err := zip.OpenReader(file)
		must(t, err)
		defer r.Close()
		for _, f := range r.File {
			content, err := f.Open()
			must(t, err)
			add(f.Name, int64(f.Mode().Perm()), content)
			must(t, content.Close())
		}
		return list, contents
	}
	compressed, err := gzip.NewReader(bytes.NewReader([]byte(read(t, file))))
	must(t, err)
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, contents
		}
		must(t, err)
		if header.ModTime.Unix() != 1700000000 || header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s in %s is of %v and of %d:%d", header.Name, file, header.ModTime, header.Uid, header.Gid)
		}
		add(header.Name, header.Mode, r)
	}
}

// TestIncomplete takes one thing away at a time. Then there is no release, not even a part of one.
func TestIncomplete(t *testing.T) {
	whole := built(t)
	for _, file := range []string{
		"dist/linux-arm64/kata-device-plugin", "dist/windows-arm64/kubectl-device.exe", "dist/images.oci.tar",
		"dist/kubectl-device.oci.tar", "dist/kubectl-device-linux-arm64.spdx.json", "dist/kata-device-plugin.yaml",
		"dist/man", "LICENSE", "go/LICENSE", "charts/passthrough", "tools/krew",
	} {
		t.Run(file, func(t *testing.T) {
			dir := clone(t, whole)
			must(t, os.RemoveAll(filepath.Join(dir, filepath.FromSlash(file))))
			refused(t, dir, filepath.Base(file))
		})
	}
}

// refused makes a release of what is there, which has to fail with a word, and leave nothing behind.
func refused(t *testing.T, dir, word string, extra ...string) {
	t.Helper()
	out, err := releaseOf(t, dir, extra...)
	if err == nil || !strings.Contains(err.Error(), word) {
		t.Errorf("got %v, want an error with %q", err, word)
	}
	if left := tree(t, filepath.Dir(out)); len(left) != 0 {
		t.Errorf("it left %v behind", slices.Collect(maps.Keys(left)))
	}
}

// clone is a copy that a test may change.
func clone(t *testing.T, dir string) string {
	t.Helper()
	other := t.TempDir()
	must(t, os.CopyFS(other, os.DirFS(dir)))
	return other
}

func TestRefused(t *testing.T) {
	whole := built(t)
	for _, test := range []struct{ name, file, content, word string }{
		{"a pattern in .helmignore", "charts/passthrough/.helmignore", "*.in\n", `pattern "*.in"`},
		{"no version in the chart", "charts/passthrough/Chart.yaml", "appVersion: dev\n", `"version:"`},
		{"another image in the manifest", "dist/kata-device-plugin.yaml", "  image: other:dev\n", "no image kata-device-plugin:dev"},
		{"a program that Go has not built", "dist/linux-amd64/kata-device-plugin", "#!/bin/sh\n", "build information"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := clone(t, whole)
			write(t, filepath.Join(dir, filepath.FromSlash(test.file)), test.content)
			refused(t, dir, test.word)
		})
	}
	t.Run("an archive that krew wants is not made", func(t *testing.T) {
		dir := clone(t, whole)
		write(t, filepath.Join(dir, "tools", "krew", "device.yaml"), "sha256: SHA256_PLAN9_AMD64\n")
		refused(t, dir, "kubectl-device-plan9-amd64")
	})
	t.Run("there already", func(t *testing.T) {
		dir := clone(t, whole)
		if _, err := releaseOf(t, dir, "-out", dir); err == nil || !strings.Contains(err.Error(), "there already") {
			t.Errorf("got %v", err)
		}
	})
}

func TestVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "", "v0.1.0-rc.1": "", "v10.20.30-beta": "",
		"":                        "not one such as",
		"unknown":                 "not one such as",
		"3af3a9b":                 "the commit has no tag",
		"3af3a9b-dirty":           "changes that are not committed",
		"v1.2.3-dirty":            "changes that are not committed",
		"v1.2.3-4-g3af3a9b":       "has none itself",
		"v1.2.3-4-g3af3a9b-dirty": "changes that are not committed",
		"1.2.3":                   "not one such as",
		"v1.2":                    "not one such as",
		"v01.2.3":                 "not one such as",
		"v1.2.3+build":            "not one such as",
		"v1.2.3\nv":               "not one such as",
	} {
		err := run([]string{"-check", "-version", version}, epoch, t.Output())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "VERSION=")) {
			t.Errorf("of version %q: %v, want %q", version, err, want)
		}
	}
}
