package kernel

import (
	"io/fs"
	"path"
	"strings"
	"testing"

	"kata-device-plugin/internal/devfs"
	"kata-device-plugin/internal/host"
	"kata-device-plugin/internal/sim"
	"kata-device-plugin/internal/sysfs"

	"kata-device-plugin/test/kernel/facts"
)

// notedFS notes what is read of sysfs.
type notedFS struct {
	*sysfs.FS
	read map[string]bool
}

func (n *notedFS) ReadFile(name string) ([]byte, error) {
	n.read[name] = true
	return n.FS.ReadFile(name)
}

func (n *notedFS) ReadLink(name string) (string, error) {
	n.read[name] = true
	return n.FS.ReadLink(name)
}

func (n *notedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	n.read[name] = true
	return n.FS.ReadDir(name)
}

func (n *notedFS) Open(name string) (fs.File, error) {
	n.read[name] = true
	return n.FS.Open(name)
}

// Whatever the product reads of sysfs has to be in the tables, or it is not compared with the kernel.
func TestTablesHaveWhatIsRead(t *testing.T) {
	platforms := sim.Platforms()
	_, pf := twoFunctions()
	pf.Driver = "vfio-pci"
	for _, p := range append(platforms, sim.Platform{Name: "a PF", Functions: []sim.Function{pf}}) {
		t.Run(p.Name, func(t *testing.T) {
			dir, n := simulated(t, p)
			if _, err := n.AddMdev("83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"); err != nil {
				t.Fatal(err)
			}
			if p.Name == "a PF" {
				if err := n.SetVFs(pf.Address(), 2, "vfio-pci"); err != nil {
					t.Fatal(err)
				}
			}
			inTable(t, dir)
		})
	}
}

// inTable looks at a machine in every way there is, and holds that against its table.
func inTable(t *testing.T, dir string) {
	t.Helper()
	roots := host.Under(dir, "reads")
	sys, err := sysfs.Open(roots.Sys)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	noted := &notedFS{FS: sys, read: map[string]bool{}}
	source := host.Source{Sys: noted, Dev: devfs.Dir(roots.Dev)}
	s := source.Look(nil)
	source.Glance(s)
	for _, f := range s.Functions {
		source.Again(s, f.Address)
	}
	if len(noted.read) < len(s.Functions)*10 {
		t.Errorf("of %d functions only %d reads were noted", len(s.Functions), len(noted.read))
	}
	table := facts.Take(dir)
	place := byBus(table)
	for read := range noted.read {
		if _, known := table["sys/"+place(read)]; !known {
			t.Errorf("the product reads /sys/%s, which is not in the table", read)
		}
	}
}

// byBus returns a function that puts the bus's name of a function in the place of its directory.
func byBus(t facts.Table) func(string) string {
	const devices = "sys/bus/pci/devices/"
	dirs := map[string]string{}
	for name, target := range t {
		if to, ok := strings.CutPrefix(target, "-> ../../../"); ok && path.Dir(name)+"/" == devices {
			dirs[to] = strings.TrimPrefix(name, "sys/")
		}
	}
	return func(read string) string {
		for dir := read; dir != "."; dir = path.Dir(dir) {
			if at, ok := dirs[dir]; ok {
				return at + strings.TrimPrefix(read, dir)
			}
		}
		return read
	}
}
