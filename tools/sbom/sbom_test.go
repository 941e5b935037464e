package sbom_test

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"kata-device-plugin/tools/sbom"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// output runs the go command in a directory.
func output(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	must(t, err)
	return strings.TrimSpace(string(out))
}

// TestPrograms holds the document of each program against what the go command says of the file: every
// module, and no other, with its checksum. Each licence is known and allowed, or there is no document.
func TestPrograms(t *testing.T) {
	bin := t.TempDir()
	output(t, "../..", "build", "-trimpath", "-buildvcs=false", "-tags=grpcnotrace", "-ldflags=-s -w -buildid=", "-o", bin, "./cmd/...")
	cache := output(t, ".", "env", "GOMODCACHE")
	programs, err := os.ReadDir(bin)
	must(t, err)
	if len(programs) < 5 {
		t.Fatalf("there are the programs %v", programs)
	}
	for _, program := range programs {
		t.Run(program.Name(), func(t *testing.T) {
			file := filepath.Join(bin, program.Name())
			subject := sbom.Subject{
				Name: program.Name(), Version: "v1.2.3", Platform: "linux/amd64", Purpose: "CONTAINER",
				Files: []string{file}, Modules: cache, Time: time.Unix(1700000000, 0),
			}
			content, err := sbom.Document(subject)
			must(t, err)
			again, err := sbom.Document(subject)
			must(t, err)
			if !bytes.Equal(content, again) {
				t.Error("two documents of the same program differ")
			}
			document, err := spdxjson.Read(bytes.NewReader(content))
			must(t, err)
			checkParts(t, document)
			want := map[string]string{"std " + goVersion(t, file): ""}
			for line := range strings.Lines(output(t, ".", "version", "-m", file)) {
				if f := strings.Fields(line); f[0] == "dep" {
					want[f[1]+" "+f[2]] = "go.sum " + f[3]
				}
			}
			if got := modules(document); !maps.Equal(got, want) {
				t.Errorf("the document lists\n%v\nand the program is made of\n%v", got, want)
			}
		})
	}
}

func goVersion(t *testing.T, file string) string {
	t.Helper()
	line, _, _ := strings.Cut(output(t, ".", "version", file), "\n")
	return line[strings.LastIndex(line, " ")+1:]
}

// modules returns the source of each module of a document, by name and version, and takes none that
// nothing depends on.
func modules(document *spdx.Document) map[string]string {
	needed := map[string]bool{}
	for _, r := range document.Relationships {
		if r.Relationship == "DEPENDS_ON" {
			needed[string(r.RefB.ElementRefID)] = true
		}
	}
	list := map[string]string{}
	for _, p := range document.Packages {
		if p.PrimaryPackagePurpose == "LIBRARY" && needed[string(p.PackageSPDXIdentifier)] {
			list[p.PackageName+" "+p.PackageVersion] = p.PackageSourceInfo
		}
	}
	return list
}

// TestDocument looks at what a document says of itself.
func TestDocument(t *testing.T) {
	file, err := os.Executable()
	must(t, err)
	content, err := sbom.Document(sbom.Subject{
		Name: "an image", Version: "v1.2.3", Platform: "linux/arm64", Purpose: "CONTAINER",
		Files: []string{file}, Modules: output(t, ".", "env", "GOMODCACHE"), Time: time.Unix(1700000000, 0),
	})
	must(t, err)
	document, err := spdxjson.Read(bytes.NewReader(content))
	must(t, err)
	if document.SPDXVersion != "SPDX-2.3" || document.DataLicense != "CC0-1.0" || document.DocumentName != "an image v1.2.3 linux/arm64" {
		t.Errorf("it is %s under %s of %q", document.SPDXVersion, document.DataLicense, document.DocumentName)
	}
	if got := document.CreationInfo.Created; got != "2023-11-14T22:13:20Z" {
		t.Errorf("it was created at %s", got)
	}
	if !strings.HasPrefix(document.DocumentNamespace, "urn:sha256:") || strings.Contains(document.DocumentNamespace, "#") {
		t.Errorf("its namespace is %q", document.DocumentNamespace)
	}
}

// checkParts looks at what SPDX wants of the parts of a document: the fields that are mandatory,
// identifiers that are unique, and relationships between things that exist.
func checkParts(t *testing.T, document *spdx.Document) {
	t.Helper()
	ids := []string{"DOCUMENT"}
	for _, p := range document.Packages {
		if slices.Contains(ids, string(p.PackageSPDXIdentifier)) {
			t.Errorf("two packages are %s", p.PackageSPDXIdentifier)
		}
		ids = append(ids, string(p.PackageSPDXIdentifier))
		if p.PackageName == "" || p.PackageDownloadLocation == "" || p.PackageLicenseDeclared == "" || p.FilesAnalyzed {
			t.Errorf("the package %+v lacks something", p)
		}
	}
	for _, r := range document.Relationships {
		for _, end := range []string{string(r.RefA.ElementRefID), string(r.RefB.ElementRefID)} {
			if !slices.Contains(ids, end) {
				t.Errorf("the end %s of a relationship %s does not exist", end, r.Relationship)
			}
		}
	}
}
