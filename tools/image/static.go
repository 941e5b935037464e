package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"slices"
)

// machines are the architectures that an image can be made for, and how their executables say so.
var machines = map[string]elf.Machine{
	"amd64": elf.EM_X86_64,
	"arm64": elf.EM_AARCH64,
}

func architectures() []string { return slices.Sorted(maps.Keys(machines)) }

// checkStatic refuses an executable that an image from scratch cannot run: one for
// another machine, or one that asks for a dynamic loader.
func checkStatic(content []byte, arch string) error {
	f, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("read it as an ELF executable: %w", err)
	}
	if want := machines[arch]; f.Machine != want {
		return fmt.Errorf("it is for %v, not for %v", f.Machine, want)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("it is dynamically linked, build it with CGO_ENABLED=0")
		}
	}
	return nil
}
