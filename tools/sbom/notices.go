package sbom

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
)

// Licence is a file with the terms of something.
type Licence struct {
	Name string
	Text []byte
}

// Licences are the files that go with programs, in an archive or in an image: our licence, that of the
// names of PCI hardware, and those of all that is linked. The sources are in the directory repository.
func Licences(repository, modules, goroot string, programs ...string) ([]Licence, error) {
	own, err := os.ReadFile(filepath.Join(repository, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("read our licence: %w", err)
	}
	names, err := os.ReadFile(filepath.Join(repository, "internal", "pciids", "LICENSE.pci.ids"))
	if err != nil {
		return nil, fmt.Errorf("read the licence of pci.ids: %w", err)
	}
	var others []byte
	for i, program := range programs {
		text, err := notices(program, modules, goroot)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			others = append(others, '\n')
		}
		others = append(others, text...)
	}
	return []Licence{{"LICENSE", own}, {"LICENSE.pci.ids", names}, {"LICENSE.third-party", others}}, nil
}

// notices returns the texts of the licences, and the notices, of all that is linked into a program: most
// licences want them to be given away with it. The one of Go is in the directory of Go.
func notices(file, modules, goroot string) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the build information of %s: %w", file, err)
	}
	var text bytes.Buffer
	standard, err := os.ReadFile(filepath.Join(goroot, "LICENSE"))
	if err != nil {
		return nil, fmt.Errorf("read the licence of %s: %w", info.GoVersion, err)
	}
	notice(&text, "Go "+info.GoVersion, standard)
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		files, err := licenceFiles(modules, m.Path, m.Version)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			notice(&text, m.Path+" "+m.Version+" "+f.name, f.text)
		}
	}
	return text.Bytes(), nil
}

// notice adds one text under its title.
func notice(to *bytes.Buffer, title string, text []byte) {
	if to.Len() > 0 {
		to.WriteString("\n")
	}
	fmt.Fprintf(to, "==== %s\n\n%s\n", title, bytes.TrimSpace(text))
}
