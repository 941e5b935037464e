package sbom

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// MediaType is that of a document, where an artifact has to have one.
const MediaType = "application/spdx+json"

const unsaid = "NOASSERTION"

// Subject is what a document is about.
type Subject struct {
	Name     string    // of the image or of the archive
	Version  string    // of the release; the programs' own modules have none
	Platform string    // such as linux/amd64
	Purpose  string    // CONTAINER or APPLICATION
	Files    []string  // the programs in it
	Modules  string    // the module cache, `go env GOMODCACHE`
	Time     time.Time // of the document
}

// Document returns the SPDX document of a subject, as JSON.
func Document(s Subject) ([]byte, error) {
	w := writer{subject: s, seen: map[string]common.ElementID{}, root: id("subject", s.Name, s.Platform)}
	w.add(spdx.Package{
		PackageName: s.Name, PackageSPDXIdentifier: w.root, PackageVersion: s.Version,
		PackageLicenseDeclared: "Apache-2.0", PrimaryPackagePurpose: s.Purpose,
	})
	w.relate("DOCUMENT", "DESCRIBES", w.root)
	names := sha256.New()
	for _, file := range s.Files {
		sum, err := w.program(file)
		if err != nil {
			return nil, fmt.Errorf("list what %s is made of: %w", file, err)
		}
		names.Write(sum)
	}
	document := spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName: strings.Join([]string{s.Name, s.Version, s.Platform}, " "),
		// A name, not an address. It has to differ where the content does, and nowhere else.
		DocumentNamespace: "urn:sha256:" + hex.EncodeToString(names.Sum([]byte{})) + ":" + string(w.root),
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "kata-device-plugin/tools/sbom"}},
			Created:  s.Time.UTC().Format(time.RFC3339),
		},
		Packages: w.packages, Relationships: w.relationships,
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(&document); err != nil {
		return nil, fmt.Errorf("encode the document of %s: %w", s.Name, err)
	}
	return buf.Bytes(), nil
}

// writer collects the packages of a document. A module that two programs share is one package.
type writer struct {
	subject       Subject
	root          common.ElementID
	seen          map[string]common.ElementID // module and version
	packages      []*spdx.Package
	relationships []*spdx.Relationship
}

// program adds one program and its modules, and returns the checksum of its file.
func (w *writer) program(file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read it: %w", err)
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("read its build information: %w", err)
	}
	sum := sha256.Sum256(content)
	program := id("program", info.Path)
	declared, version := "Apache-2.0", w.subject.Version
	if !strings.HasPrefix(info.Path, info.Main.Path+"/") {
		declared, version = unsaid, "" // of another project: its module is among the dependencies
	}
	w.add(spdx.Package{
		PackageName: info.Path, PackageSPDXIdentifier: program, PackageVersion: version,
		PackageChecksums:       []common.Checksum{{Algorithm: common.SHA256, Value: hex.EncodeToString(sum[:])}},
		PackageLicenseDeclared: declared, PrimaryPackagePurpose: "APPLICATION",
	})
	w.relate(w.root, "CONTAINS", program)
	modules := append([]*debug.Module{{Path: "std", Version: info.GoVersion}}, info.Deps...)
	for _, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		element, err := w.module(m)
		if err != nil {
			return nil, err
		}
		w.relate(program, "DEPENDS_ON", element)
	}
	return sum[:], nil
}

// module adds a module, if it is not there yet.
func (w *writer) module(m *debug.Module) (common.ElementID, error) {
	key := m.Path + "@" + m.Version
	if element, ok := w.seen[key]; ok {
		return element, nil
	}
	declared, source := standardLibrary, ""
	if m.Path != "std" {
		if m.Sum == "" {
			return "", fmt.Errorf("module %s has no checksum: it was not taken from the module cache", key)
		}
		var err error
		if declared, err = licence(w.subject.Modules, m.Path, m.Version); err != nil {
			return "", err
		}
		source = "go.sum " + m.Sum // a hash over the files of the module, which no SPDX algorithm is
	}
	element := id("module", m.Path, m.Version)
	w.seen[key] = element
	w.add(spdx.Package{
		PackageName: m.Path, PackageSPDXIdentifier: element, PackageVersion: m.Version,
		PackageLicenseDeclared: declared, PackageSourceInfo: source, PrimaryPackagePurpose: "LIBRARY",
		PackageExternalReferences: []*spdx.PackageExternalReference{{
			Category: "PACKAGE-MANAGER", RefType: "purl", Locator: "pkg:golang/" + strings.ToLower(m.Path) + "@" + m.Version,
		}},
	})
	return element, nil
}

// add adds a package, and says of it what is so of all.
func (w *writer) add(p spdx.Package) {
	p.PackageDownloadLocation, p.PackageCopyrightText = unsaid, unsaid
	p.PackageLicenseConcluded = unsaid // nobody has read more than the licence file
	w.packages = append(w.packages, &p)
}

func (w *writer) relate(from common.ElementID, what string, to common.ElementID) {
	w.relationships = append(w.relationships, &spdx.Relationship{
		RefA: common.MakeDocElementID("", string(from)), Relationship: what, RefB: common.MakeDocElementID("", string(to)),
	})
}

// id makes an SPDX identifier: letters, digits, dots and hyphens. Two names that differ in other
// characters alone would have the same one, so what was replaced is in a hash at the end.
func id(parts ...string) common.ElementID {
	name := strings.Join(parts, "-")
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, name)
	if clean == name {
		return common.ElementID(clean)
	}
	sum := sha256.Sum256([]byte(name))
	return common.ElementID(clean + "-" + hex.EncodeToString(sum[:4]))
}
