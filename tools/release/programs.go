package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"kata-device-plugin/tools/sbom"
)

// person is the program that people have on their own machines, so for other systems as well.
const person = "kubectl-device"

// systems are those of the nodes, on which every program runs.
func systems() []string { return []string{"linux-amd64", "linux-arm64"} }

// names lists the programs. What else lies in the directory of what was built is of an older build.
func (r release) names() ([]string, error) {
	files, err := filepath.Glob(filepath.Join(r.Repository, "cmd", "*", "main.go"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no program below %s", filepath.Join(r.Repository, "cmd"))
	}
	var names []string
	for _, file := range files {
		names = append(names, filepath.Base(filepath.Dir(file)))
	}
	return names, nil
}

// programs packs each program for each of its systems.
func (r release) programs() error {
	names, err := r.names()
	if err != nil {
		return err
	}
	for _, name := range names {
		on := systems()
		if name == person {
			on = slices.Concat(on, r.Systems)
		}
		for _, system := range on {
			if err := r.program(name, system); err != nil {
				return fmt.Errorf("pack %s for %s: %w", name, system, err)
			}
		}
	}
	return nil
}

// archiveName is the file of a program for a system, with the format that people there can read.
func archiveName(name, system string) string {
	if strings.HasPrefix(system, "windows-") {
		return name + "-" + system + ".zip"
	}
	return name + "-" + system + ".tar.gz"
}

// program packs a program with the licences that go with it, and lists what it is made of.
func (r release) program(name, system string) error {
	file := name
	if strings.HasPrefix(system, "windows-") {
		file += ".exe"
	}
	built := filepath.Join(r.In, system, file)
	content, err := os.ReadFile(built)
	if err != nil {
		return err
	}
	members := []member{{file, 0o755, content}}
	more, err := r.beside(name, built)
	if err != nil {
		return err
	}
	archive, err := pack(archiveName(name, system), slices.Concat(members, more), r.Time)
	if err != nil {
		return err
	}
	if err := r.write(archiveName(name, system), archive); err != nil {
		return err
	}
	document, err := sbom.Document(sbom.Subject{
		Name: name, Version: r.Version, Platform: strings.Replace(system, "-", "/", 1), Purpose: "ARCHIVE",
		Files: []string{built}, Modules: r.Modules, Time: r.Time,
	})
	if err != nil {
		return err
	}
	return r.write(archiveName(name, system)+".spdx.json", document)
}

// beside returns what is in the archive of a program beside the program: licences, ours and those of
// what is linked, and for people manual pages and what completes the command in shells.
func (r release) beside(name, built string) ([]member, error) {
	licences, err := sbom.Licences(r.Repository, r.Modules, r.Root, built)
	if err != nil {
		return nil, err
	}
	var members []member
	for _, licence := range licences {
		members = append(members, member{licence.Name, 0o644, licence.Text})
	}
	if name != person {
		return members, nil
	}
	for _, dir := range []string{"man", "completions"} {
		entries, err := os.ReadDir(filepath.Join(r.In, dir))
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			text, err := os.ReadFile(filepath.Join(r.In, dir, entry.Name()))
			if err != nil {
				return nil, err
			}
			mode := int64(0o644)
			if strings.Contains(entry.Name(), "_complete-") {
				mode = 0o755 // kubectl runs it
			}
			members = append(members, member{path.Join(dir, entry.Name()), mode, text})
		}
	}
	return members, nil
}

// images takes the images and their SBOMs as they are.
func (r release) images() error {
	names, err := r.names()
	if err != nil {
		return err
	}
	files := []string{"images.oci.tar"}
	for _, name := range names {
		files = append(files, name+".oci.tar")
		for _, system := range systems() {
			files = append(files, name+"-"+system+".spdx.json")
		}
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(r.In, file))
		if err != nil {
			return err
		}
		if err := r.write(file, content); err != nil {
			return err
		}
	}
	return nil
}
