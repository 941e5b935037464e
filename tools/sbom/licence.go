package sbom

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/licensecheck"
	"golang.org/x/mod/module"
)

// standardLibrary is the licence of the Go release, of which the standard library is linked.
const standardLibrary = "BSD-3-Clause"

// known is how much of a licence file has to be text of licences that are known. The rest is names
// of holders and notes; more of it may be a condition that nobody has read.
const known = 60 // percent

// allowed are the licences of what may be linked into programs under Apache-2.0 that are given away.
func allowed() []string { return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"} }

// chosen are licence files that offer a choice, by the checksum of their text: a text that changes has to
// be read anew. What is chosen of it is allowed.
func chosen() map[string]string {
	return map[string]string{
		// kernel.org/pub/linux/libs/security/libcap/psx: we take it under the first.
		"279fa656c62857d42952b86a0789b98669ca1cb4b324a8d9e91397c174af4c14": "(BSD-3-Clause OR GPL-2.0-only)",
	}
}

// licence returns the SPDX expression of a module's licence files in the module cache. A licence that is
// not known, or not allowed, is an error: somebody has to read it before the module is shipped.
func licence(cache, path, version string) (string, error) {
	files, err := licenceFiles(cache, path, version)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, file := range files {
		if isNotice(file.name) {
			continue
		}
		found, err := identify(file.text)
		if err != nil {
			return "", fmt.Errorf("identify %s of module %s %s: %w", file.name, path, version, err)
		}
		ids = append(ids, found...)
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("module %s %s has no licence file, so it cannot be shipped", path, version)
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " AND "), nil
}

// legal is a licence or a notice of a module.
type legal struct {
	name string
	text []byte
}

// licenceFiles reads the licences and notices at the top of a module, in the order of their names.
func licenceFiles(cache, path, version string) ([]legal, error) {
	escapedPath, err := module.EscapePath(path)
	if err != nil {
		return nil, fmt.Errorf("name the directory of module %s: %w", path, err)
	}
	escapedVersion, err := module.EscapeVersion(version)
	if err != nil {
		return nil, fmt.Errorf("name the directory of module %s %s: %w", path, version, err)
	}
	dir := filepath.Join(cache, filepath.FromSlash(escapedPath)+"@"+escapedVersion)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for the licence of module %s %s (`go mod download` fills the module cache): %w", path, version, err)
	}
	var files []legal
	for _, entry := range entries {
		if entry.IsDir() || !isLicence(entry.Name()) && !isNotice(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read %s of module %s %s: %w", entry.Name(), path, version, err)
		}
		files = append(files, legal{entry.Name(), text})
	}
	return files, nil
}

// isLicence tells licence files by the names that they have by custom.
func isLicence(name string) bool {
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "LICENSE") || strings.HasPrefix(name, "LICENCE") || strings.HasPrefix(name, "COPYING")
}

// isNotice tells the files whose text Apache-2.0 wants to be passed on.
func isNotice(name string) bool { return strings.HasPrefix(strings.ToUpper(name), "NOTICE") }

// identify returns the SPDX identifiers of the licences in a text.
func identify(text []byte) ([]string, error) {
	sum := sha256.Sum256(text)
	if choice, ok := chosen()[hex.EncodeToString(sum[:])]; ok {
		return []string{choice}, nil
	}
	coverage := licensecheck.Scan(text)
	if len(coverage.Match) == 0 || coverage.Percent < known {
		return nil, fmt.Errorf("only %.0f %% of it is text of licences that are known", coverage.Percent)
	}
	var ids []string
	for _, match := range coverage.Match {
		if !slices.Contains(allowed(), match.ID) {
			return nil, fmt.Errorf("licence %s is not one of %s", match.ID, strings.Join(allowed(), ", "))
		}
		ids = append(ids, match.ID)
	}
	return ids, nil
}
