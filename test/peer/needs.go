package peer

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// MissingError says what a machine lacks to run a node.
type MissingError struct{ Things []string }

func (e *MissingError) Error() string {
	return "this machine cannot run a node: it lacks " + strings.Join(e.Things, ", ")
}

// find looks for what the machine has to bring along: the programs that are not built,
// and root. It looks for everything before it complains.
func (p *Programs) find() error {
	var missing []string
	if os.Geteuid() != 0 {
		missing = append(missing, "root")
	}
	for _, name := range []string{"runc", "ip"} {
		path, err := exec.LookPath(name)
		if err != nil {
			missing = append(missing, fmt.Sprintf("%s (Debian's package %s)", name, map[string]string{"runc": "runc", "ip": "iproute2"}[name]))
			continue
		}
		p.paths[name] = path
	}
	if path, err := exec.LookPath("busybox"); err == nil && static(path) {
		p.paths["busybox"] = path
	} else {
		missing = append(missing, "a static busybox (Debian's package busybox-static)")
	}
	if missing != nil {
		return &MissingError{Things: missing}
	}
	return nil
}

// static says whether a program runs in an image that holds nothing else.
func static(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}
