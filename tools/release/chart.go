package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const chartName = "passthrough"

// chart packs the Helm chart as `helm package` does: Chart.yaml first, all below the chart's name, with
// the version of the release. A file that .helmignore names is left out; it may hold plain names alone.
func (r release) chart() error {
	dir := filepath.Join(r.Repository, "charts", chartName)
	ignored, err := ignored(dir)
	if err != nil {
		return err
	}
	var members []member
	err = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || slices.Contains(ignored, entry.Name()) {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if name == "Chart.yaml" {
			if content, err = r.versioned(content); err != nil {
				return err
			}
		}
		members = append(members, member{path.Join(chartName, filepath.ToSlash(name)), 0o644, content})
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the chart: %w", err)
	}
	// WalkDir is in lexical order, with capitals first: Chart.yaml may only be behind another such name.
	slices.SortStableFunc(members, func(a, b member) int { return first(a) - first(b) })
	file := chartName + "-" + strings.TrimPrefix(r.Version, "v") + ".tgz"
	archive, err := pack(file, members, r.Time)
	if err != nil {
		return err
	}
	return r.write(file, archive)
}

func first(m member) int {
	if m.name == path.Join(chartName, "Chart.yaml") {
		return 0
	}
	return 1
}

// versioned sets the two versions in a Chart.yaml. The chart's has no v, by Helm's rules; the other is
// the tag of the images.
func (r release) versioned(text []byte) ([]byte, error) {
	for _, line := range []struct{ key, value string }{
		{"version", strings.TrimPrefix(r.Version, "v")},
		{"appVersion", r.Version},
	} {
		pattern := regexp.MustCompile(`(?m)^` + line.key + `: .*$`)
		if len(pattern.FindAll(text, -1)) != 1 {
			return nil, fmt.Errorf("rewrite Chart.yaml: it has not exactly one line %q", line.key+":")
		}
		text = pattern.ReplaceAll(text, []byte(line.key+": "+line.value))
	}
	return text, nil
}

func ignored(dir string) ([]string, error) {
	content, err := os.ReadFile(filepath.Join(dir, ".helmignore"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	names := []string{".helmignore"}
	for line := range strings.Lines(string(content)) {
		name := strings.TrimSpace(line)
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if strings.ContainsAny(name, "*?[]/!\\") {
			return nil, fmt.Errorf(".helmignore has the pattern %q: only plain names are understood here", name)
		}
		names = append(names, name)
	}
	return names, nil
}
